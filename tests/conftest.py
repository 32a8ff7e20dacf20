"""Fixtures for tests of a server, and the report of a failed test.

`server` is the shared server of each process of tests; a class with different settings overrides the fixture by means
of `class_server`. `own_server` starts servers for a single test. With JOBQ_URL and JOBQ_KEY, `server` is the server at
the address in JOBQ_URL, and each test in need of a separate server is skipped.
"""

import contextlib
import os
import textwrap

import pytest

for module in ("disk_case", "http_case", "jobqctl_case", "lua_case", "management_api", "runpod_case"):
    pytest.register_assert_rewrite(module)

import chromium  # noqa: E402  (an import before the line above would not be rewritten)
import jobq_server  # noqa: E402
import jobq_worker  # noqa: E402
import runpod_process  # noqa: E402

LONGEST_ID = 40  # characters of a parameter in the name of a test
LONGEST_REASON = 100  # characters of the settings needed by a skipped test


def pytest_addoption(parser):
    group = parser.getgroup("jobq")
    group.addoption("--examples", type=int, default=15, help="tests/openapi: calls of each operation")
    group.addoption("--seed", type=int, default=1, help="tests/openapi: the seed of what is sent")


def pytest_collection_modifyitems(items):
    """Multiplies the time limits of `pytest.mark.timeout` by JOBQ_TEST_TIME. The nightly preset sets the variable: the
    marks were written for shorter runs."""
    factor = float(os.environ.get("JOBQ_TEST_TIME", "1"))
    for item in items if factor != 1 else []:
        if mark := item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(factor * mark.args[0]), append=False)


@pytest.fixture
def server():
    return jobq_server.shared_server()


@pytest.fixture
def at_end():
    """A stack of objects to close and functions to call when the test is over, the last first."""
    with contextlib.ExitStack() as stack:
        yield stack


@pytest.fixture
def own_server(at_end):
    """Starts a server for the test alone: own_server(storage="memory", server__drain="1s")."""
    return lambda **settings: at_end.enter_context(new_server(settings))


@pytest.fixture(scope="class")
def class_server():
    """Starts a server for all tests of a class."""
    with contextlib.ExitStack() as stack:
        yield lambda **settings: stack.enter_context(new_server(settings))


@pytest.fixture(scope="session")
def browser():
    """A browser for all tests of a process."""
    if reason := chromium.missing():
        pytest.skip(reason)
    with chromium.Chromium() as started:
        yield started


@pytest.fixture(scope="class")
def class_page(browser):
    with browser.page() as page:
        yield page


@pytest.fixture
def browser_page(class_page):
    """The page of the class, as on a light desktop at first. An error in the console fails the test, unless the test has
    read the error."""
    class_page.show_as()
    yield class_page
    assert class_page.faults() == []


def new_server(settings):
    if jobq_server.is_foreign():
        words = ", ".join(f"{name.replace('__', '.')}={value}" for name, value in settings.items()) or "the tests' own"
        words = textwrap.shorten(words, LONGEST_REASON, placeholder=" ...")
        pytest.skip(f"needs a server with settings of its own ({words}), and JOBQ_URL names another one")
    return jobq_server.Server(**settings)


@pytest.fixture(autouse=True)
def own_transport(request):
    """Skips a test of behaviour that Poco's server lacks (core/decisions/http.md, "Poco's server")."""
    marker = request.node.get_closest_marker("reactor")
    if marker and jobq_server.TRANSPORT != "reactor":
        pytest.skip(f"Poco's server does not have this: {marker.args[0]}")


@pytest.fixture(autouse=True)
def endpoints_of_a_foreign_server(request):
    """Skips a test if the server at JOBQ_URL lacks an endpoint. A server started by the tests has all endpoints."""
    if not jobq_server.is_foreign():
        return
    for marker in request.node.iter_markers("endpoints"):
        for endpoint in marker.args:
            answer = jobq_server.shared_server().request("GET", f"/v2/{endpoint}/health")
            if answer.status != 200:
                pytest.skip(f"the server has no endpoint {endpoint}")


@pytest.fixture(scope="session", autouse=True)
def clean_end_of_the_shared_server():
    yield
    jobq_server.close_shared()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call():
    """The end of the shared server during a test is a failure of the test. The next test gets a new server."""
    try:
        result = yield
    except Exception as error:
        end = replace_dead_server()
        if end:
            error.add_note(end)
        raise
    end = replace_dead_server()
    if end:
        pytest.fail(end, pytrace=False)
    return result


def replace_dead_server():
    """Describes the unexpected end of the shared server; `None` while the server runs."""
    end = jobq_server.shared_end()
    if end:
        jobq_server.forget_shared()
    return end


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport():
    """A failure's report ends with the logs of the running servers, and of workers in processes of their own."""
    report = yield
    if report.failed:
        report.sections += [(f"log of {server.url}", server.log_tail(40)) for server in jobq_server.Server.live]
        report.sections += runpod_process.output_of_live_processes() + jobq_worker.logs_of_live_workers()
    return report


def pytest_make_parametrize_id(val):
    """Short names for cases with long texts, bytes or structures; the rest is left to pytest."""
    if isinstance(val, (str, bytes)) and len(val) <= LONGEST_ID:
        return None
    if isinstance(val, (str, bytes, dict, list, tuple)):
        return repr(val)[:LONGEST_ID]
    return None
