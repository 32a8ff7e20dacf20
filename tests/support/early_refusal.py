"""Requests with a refusal before the end of the body. The server reads on after such an answer for READS_ON and then
breaks the connection. A client may find a broken connection after standing still for READS_ON."""

import contextlib
import ssl
import subprocess
import time

from pace import HANG

READS_ON = 2.0  # seconds after the answer (core/http/transport/connection_reactor.cpp)
ROUNDS = 3  # the most runs of a client program, until a run without a broken connection
CURL_BROKEN = (55, 56)  # exit codes of curl: a send or a read has failed


@contextlib.contextmanager
def sending():
    """The block sends a request. A break of the connection after READS_ON is allowed: the answer came before the break,
    and can be read as usual, because the system keeps received bytes. An earlier break contradicts the rule and is
    raised. The time begins with the request, before the answer, so a correct break never counts as an early break."""
    begun = time.monotonic()
    try:
        yield
    except (BrokenPipeError, ConnectionResetError, ssl.SSLEOFError) as error:
        seconds = time.monotonic() - begun
        if seconds < READS_ON:
            raise
        print(f"the connection broke {seconds:.1f} s after the begin of the request ({error!r}): the answer is read")


def run_unbroken(command, broken=CURL_BROKEN, **options):
    """Runs a client like subprocess.run, and returns the end. `broken` has the client's exit codes for a broken connection.
    A break after READS_ON is no proof, because the program ends without a read of the answer: the client is run again. Each
    other end is returned and has to be judged by the caller, an earlier break too."""
    for _ in range(ROUNDS):
        begun = time.monotonic()
        done = subprocess.run(command, **{"capture_output": True, "check": False, "timeout": HANG, **options})
        seconds = time.monotonic() - begun
        if done.returncode not in broken or seconds < READS_ON:
            return done
        print(f"the connection of {command[0]} broke after {seconds:.1f} s: {done.stderr}")
    raise AssertionError(f"waited {ROUNDS} runs of {command[0]} for a connection that does not break after {READS_ON:g} s")
