"""The style of a report: on screens of any width, light and dark, and on paper. The colors are
those of the web page.
"""

from __future__ import annotations

from typing import Final

_LIGHT: Final = """
  --ground: #f5f6f9; --surface: #ffffff; --raised: #f0f2f6; --line: #e1e5ec; --text: #18202e; --muted: #536074;
  --accent: #3b4fd3; --done: #14714a; --failed: #bf2f0d; --running: #1b5fc4; --waiting: #5a6678; --warn: #8a5a00;
  --tint: #eceffd; --tint-failed: #fdefeb; --tint-done: #e8f6ef; --tint-mixed: #fdf4e0; --tint-running: #eaf2fd;
  --fill-failed: #d8431c; --fill-running: #4a8fec; --fill-waiting: #d9dee7; --fill-retried: #d89a17;
  --fill-init: #8d6fc0; --fill-load: #d89a17; --fill-run: #2c9c6c; --fill-lost: #d8431c; --fill-other: #8893a5;
  --h0: #dcebf8; --h1: #b9d3ef; --h2: #8fb4e0; --h3: #6d8fd0; --h4: #6a66b8; --h5: #5b3a94;
  --shadow: 0 1px 2px rgb(20 30 60 / 6%), 0 1px 8px rgb(20 30 60 / 4%);
"""
_DARK: Final = """
  --ground: #0e1218; --surface: #161b24; --raised: #1e2530; --line: #29313e; --text: #e7ebf2; --muted: #9ba8bb;
  --accent: #9aabff; --done: #5fd5a0; --failed: #ff9176; --running: #82b6ff; --waiting: #9ba8bb; --warn: #e6b85c;
  --tint: #1f2747; --tint-failed: #33201d; --tint-done: #152a23; --tint-mixed: #322813; --tint-running: #18263b;
  --fill-failed: #f0664a; --fill-running: #5b9bf3; --fill-waiting: #2f3846; --fill-retried: #dcab43;
  --fill-init: #a78bda; --fill-load: #dcab43; --fill-run: #3fb583; --fill-lost: #f0664a; --fill-other: #5f6b7e;
  --h0: #1f3350; --h1: #2b4d78; --h2: #3d6ba6; --h3: #6488cf; --h4: #9a96e4; --h5: #d3b6ff;
  --shadow: none;
"""

CSS: Final = (
    f"""
:root {{ color-scheme: light dark; {_LIGHT} }}
@media screen and (prefers-color-scheme: dark) {{ :root {{ {_DARK} }} }}
"""
    + """
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--text); -webkit-text-size-adjust: 100%;
  font: 14px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
main { max-width: 1120px; margin: 0 auto; padding: 28px 20px 48px; }
h1 { font-size: 26px; line-height: 1.2; margin: 0; letter-spacing: -0.01em; overflow-wrap: anywhere; }
h2 { font-size: 16px; margin: 0 0 12px; letter-spacing: -0.005em; }
h3 { font-size: 13px; margin: 18px 0 6px; color: var(--muted); font-weight: 600; }
p { margin: 6px 0; overflow-wrap: anywhere; }
code, pre, .mono { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; font-size: 12.5px; }
pre { margin: 8px 0 0; padding: 12px 14px; background: var(--raised); border-radius: 8px; overflow-x: auto;
  white-space: pre-wrap; overflow-wrap: anywhere; line-height: 1.45; }
.card { background: var(--surface); border: 1px solid var(--line); border-radius: 12px; box-shadow: var(--shadow);
  padding: 18px 20px; margin-top: 16px; }
.head { display: flex; flex-wrap: wrap; gap: 6px 14px; align-items: center; }
.muted { color: var(--muted); }
.small { font-size: 12.5px; }
.badge { display: inline-block; padding: 2px 10px; border-radius: 99px; font-weight: 600; font-size: 12.5px;
  background: var(--raised); color: var(--waiting); white-space: nowrap; }
.badge.completed { background: var(--tint-done); color: var(--done); }
.badge.failed, .badge.canceled { background: var(--tint-failed); color: var(--failed); }
.badge.processing, .badge.finalizing, .badge.running { background: var(--tint-running); color: var(--running); }
.badge.mixed { background: var(--tint-mixed); color: var(--warn); }
.cause { border-left: 4px solid var(--fill-failed); }
.cause .first { font-size: 16px; font-weight: 600; }
.tiles { display: grid; grid-template-columns: repeat(auto-fill, minmax(165px, 1fr)); padding: 0; overflow: hidden; }
.tile { padding: 13px 18px; box-shadow: 0 0 0 0.5px var(--line); }
.tile b { display: block; font-size: 20px; line-height: 1.25; letter-spacing: -0.01em; font-weight: 650; }
.tile.bad b { color: var(--failed); }
.stack { display: flex; height: 22px; border-radius: 6px; overflow: hidden; gap: 1px; background: var(--raised); }
.stack span { min-width: 2px; }
.legend { display: flex; flex-wrap: wrap; gap: 4px 18px; margin: 10px 0 0; padding: 0; list-style: none;
  font-size: 12.5px; color: var(--muted); }
.legend b { color: var(--text); font-weight: 600; }
.key { display: inline-block; width: 11px; height: 11px; border-radius: 3px; margin-right: 6px; vertical-align: -1px; }
.scale { display: flex; justify-content: space-between; font-size: 11.5px; color: var(--muted); margin-top: 3px;
  font-variant-numeric: tabular-nums; white-space: nowrap; }
svg { display: block; width: 100%; }
.plot { border-bottom: 1px solid var(--line); }
.area.items { fill: var(--fill-run); fill-opacity: 0.75; }
.area.busy { fill: var(--fill-running); fill-opacity: 0.6; }
.area.cpu { fill: var(--fill-running); fill-opacity: 0.7; }
.area.memory { fill: var(--fill-init); fill-opacity: 0.7; }
.h0 { fill: var(--h0); background: var(--h0); } .h1 { fill: var(--h1); background: var(--h1); }
.h2 { fill: var(--h2); background: var(--h2); } .h3 { fill: var(--h3); background: var(--h3); }
.h4 { fill: var(--h4); background: var(--h4); } .h5 { fill: var(--h5); background: var(--h5); }
.failed > i, i.failed { background: var(--fill-failed); }
svg .failed { fill: var(--fill-failed); } svg .retried { fill: var(--fill-retried); }
svg .running { fill: var(--fill-running); } svg .waiting { fill: var(--fill-waiting); }
svg .edged { stroke: var(--surface); stroke-width: 0.06; }
svg .run { fill: var(--fill-run); } svg .load { fill: var(--fill-load); } svg .init { fill: var(--fill-init); }
i.retried, span.load, i.load { background: var(--fill-load); } i.running { background: var(--fill-running); }
i.waiting, span.idle, i.idle { background: var(--fill-waiting); }
span.run, i.run, span.work { background: var(--fill-run); } i.work { background: var(--fill-run); }
span.init, i.init { background: var(--fill-init); } span.lost, i.lost { background: var(--fill-lost); }
span.other, i.other { background: var(--fill-other); } span.wait, i.wait { background: var(--fill-other); }
span.begin, i.begin { background: var(--fill-init); } span.end, i.end { background: var(--fill-running); }
.corner { clip-path: polygon(0 0, 100% 0, 100% 100%); }
.workers { display: grid; grid-template-columns: max-content 1fr; column-gap: 12px; }
.workers .names { font-size: 11px; line-height: 18px; color: var(--muted); text-align: right; }
.workers .names div { height: 18px; white-space: nowrap; max-width: 190px; overflow: hidden; text-overflow: ellipsis; }
.workers .bed { background: repeating-linear-gradient(var(--surface) 0 2px, var(--raised) 2px 16px,
  var(--surface) 16px 18px); border-radius: 4px; overflow: hidden; }
.nodes { display: grid; grid-template-columns: repeat(auto-fill, minmax(230px, 1fr)); gap: 16px 22px; }
table { border-collapse: collapse; width: 100%; font-size: 13px; }
th { text-align: left; font-weight: 600; color: var(--muted); font-size: 12px; padding: 4px 12px 4px 0;
  border-bottom: 1px solid var(--line); white-space: nowrap; }
td { padding: 6px 12px 6px 0; border-bottom: 1px solid var(--line); vertical-align: top; overflow-wrap: break-word; }
td code { overflow-wrap: anywhere; }
tr:last-child td { border-bottom: 0; }
.short td { white-space: nowrap; font-variant-numeric: tabular-nums; }
.scroll { overflow-x: auto; }
details { margin-top: 10px; }
summary { cursor: pointer; color: var(--accent); font-size: 13px; }
summary:focus-visible, a:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; border-radius: 3px; }
.group { border-top: 1px solid var(--line); padding: 12px 0 4px; }
.group:first-of-type { border-top: 0; padding-top: 0; }
.count { font-weight: 650; font-variant-numeric: tabular-nums; }
.advice li { margin: 0 0 14px; } .advice { margin: 8px 0 0; padding-left: 22px; }
.saves { color: var(--done); font-weight: 600; }
footer { margin-top: 28px; color: var(--muted); font-size: 12.5px; }
@media (max-width: 560px) {
  main { padding: 16px 12px 32px; } h1 { font-size: 21px; } .card { padding: 14px; border-radius: 10px; }
  .tiles { grid-template-columns: repeat(2, 1fr); padding: 0; } .workers .names div { max-width: 96px; }
  .scale.five span:nth-child(even) { display: none; }
}
@media print {
  @page { margin: 14mm; }
  body { background: none; font-size: 11px; } main { max-width: none; padding: 0; }
  .card, tr, .group { break-inside: avoid; box-shadow: none; } .card.long { break-inside: auto; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  details::details-content { content-visibility: visible; block-size: auto; }
}
"""
)
