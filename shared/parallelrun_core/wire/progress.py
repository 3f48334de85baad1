"""Progress of a job in numbers: kept by its leader, shown by all others."""

from __future__ import annotations

import msgspec

from parallelrun_core.wire.costs import usd_text

_WORTH_TELLING = 1.0


class Progress(msgspec.Struct, kw_only=True):
    """Progress of a job. Counts are mini-batches, unless the name says otherwise."""

    scheduled: int = 0
    """Found so far; the total once `listing_done`."""
    listing_done: bool = False
    """True when `scheduled` is the job's total."""
    published: int = 0
    running: int = 0
    """Mini-batches with a worker: one each, or as many as it runs at once; agents hold more."""
    preparing: int = 0
    """Nodes that are building the Python environment of the workers."""
    nodes: int = 0
    """Nodes of the job's compute that are there for it."""
    nodes_wanted: int = 0
    """Nodes that it has or waits for; 0: it runs on no compute."""
    nodes_why: str = ""
    """Why there are fewer: what the compute's engine says."""
    done: int = 0
    failed: int = 0
    empty: int = 0
    """Mini-batches of `done` without any item: ranges of a table in which no record begins."""
    resumed: int = 0
    """Mini-batches of `done` whose rows were taken over from an earlier job (`resume_from`)."""
    retried: int = 0
    """Tries that failed and were followed by another."""
    lost: int = 0
    """Deliveries that ended because their node was lost."""
    bytes_shuffled: int = 0
    """Progress of grouping a table's rows by keys before it is cut; of `bytes_to_shuffle`."""
    bytes_to_shuffle: int = 0
    items_scheduled: int = 0
    """Found so far; for a table, the rows that were read."""
    items_ahead: int = 0
    """Found as well, and in no mini-batch yet: of a job that chooses the size of these (`mini_batch_size: auto`)."""
    all_found: bool = False
    """True if such a job has found all items, though not all of them are in mini-batches."""
    chosen_size: int = 0
    """Number of items a mini-batch of such a job has now; 0: it doesn't choose."""
    chosen_why: str = ""
    items_done: int = 0
    items_failed: int = 0
    """Failed items, as Azure ML counts: all of mini-batches that failed, and those without a row of `run()`."""
    items_short: int = 0
    """Part of `items_failed`: `run()` returned no row for them, and nothing was raised."""
    items_estimated: int = 0
    """Part of `items_failed`: an estimate, for mini-batches that failed before anybody had counted their items."""
    waits_s: dict[str, float] = {}
    """Seconds for which mini-batches that are done have waited for permits, by limit, all added up."""
    waits_of_s: float = 0.0
    """Seconds that those of them took which have asked for permits, waits included, all added up."""
    spent_usd: float = 0.0
    """US dollars that scripts have reported as the cost of their calls, all tries included."""
    budget_usd: float = 0.0
    """US dollars that the job may spend; 0: it has no budget."""
    rows: int = 0
    bytes_concatenated: int = 0
    bytes_to_concatenate: int = 0
    workers: int = 0
    """Worker processes that nodes have for the job, those still in `init()` included."""
    init_since: float = 0.0
    """Start of the worker that is in `init()` for longest, in seconds since the epoch; 0: none is."""
    init_limit_s: float = 0.0
    """Seconds that `init()` may take; 0: not known yet."""
    longest: int = -1
    """Id of the mini-batch that runs for longest; -1: not known."""
    longest_since: float = 0.0
    """Time when that one began, in seconds since the epoch."""
    queued_at: float = 0.0
    """Time of the submission, or of the last resume or retry, in seconds since the epoch; 0: a leader of an earlier
    release."""
    worked_from: float = 0.0
    """Time at which a mini-batch first had a worker since `queued_at`, in seconds since the epoch; 0: none has had."""
    decided_before: int = 0
    """Mini-batches that were decided before `queued_at`: they say nothing about the pace."""
    items_before: int = 0
    recent_from: float = 0.0
    """Begin of the last minutes in which mini-batches were decided, in seconds since the epoch."""
    recent_to: float = 0.0
    """Time of the last change of the two counts that follow."""
    recent_mini_batches: int = 0
    """Mini-batches decided from `recent_from` on."""
    recent_items: int = 0

    @property
    def items_found(self) -> int:
        return self.items_scheduled + self.items_ahead

    @property
    def knows_items(self) -> bool:
        """Return whether `items_found` is the total."""
        return self.listing_done or self.all_found

    @property
    def items_decided(self) -> int:
        """Return how many items have a row, have failed, or only have no row: the `Items` of every list and page."""
        return self.items_done + self.items_failed

    @property
    def items_lost(self) -> int:
        """Return how many items something has gone wrong with: those that are only without a row are not among them."""
        return self.items_failed - self.items_short

    @property
    def is_used_up(self) -> bool:
        """Return whether the budget is used up: nothing more is handed out."""
        return 0 < self.budget_usd <= self.spent_usd

    def cost_text(self) -> str:
        """Return what the job has spent, and its budget; empty: neither is known."""
        if not (self.spent_usd or self.budget_usd):
            return ""
        budget = f" of a budget of {usd_text(self.budget_usd)}" if self.budget_usd else ""
        return f"{usd_text(self.spent_usd)}{budget} spent"

    def waits_percent(self) -> dict[str, float]:
        """Return the part of their time that mini-batches have waited for each limit, in percent, the longest first."""
        shares = {name: 100 * seconds / self.waits_of_s for name, seconds in self.waits_s.items() if self.waits_of_s}
        return dict(sorted(shares.items(), key=lambda each: -each[1]))

    def waits_text(self) -> str:
        """Return for which limits mini-batches have waited for a part of their time that is worth telling; empty: for
        none."""
        shares = [f"{name} {share:.0f} %" for name, share in self.waits_percent().items() if share >= _WORTH_TELLING]
        return f"waits for {', '.join(shares)}: more nodes won't help" if shares else ""

    @property
    def decided(self) -> int:
        return self.done + self.failed
