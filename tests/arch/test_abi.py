"""The recorded plugin ABI (sdk/abi) is the ABI of the headers, and the message about a changed header names the version
number to raise. Tests change a copy of the sdk."""
import pathlib
import shutil
import sys

import pytest

SDK = pathlib.Path(__file__).resolve().parents[2] / "sdk"
sys.path.insert(0, str(SDK / "abi"))
import check  # noqa: E402

pytestmark = pytest.mark.skipif(check.unfit() is not None, reason=str(check.unfit()))

RANK = "virtual std::int64_t rank(const JobSpec& job, Instant now, const GroupState& state) const = 0;"
GROUP = "virtual std::string group(const JobSpec& job) const = 0;"
EARLY = RANK.replace("rank", "early")
GUARDED = """
  bool added() const { return abiMinor() >= 1 && doAdded(); }

 private:
  virtual bool doAdded() const { return true; }
"""


class Copy:
    """A copy of the sdk that a test may change."""

    def __init__(self, folder):
        self.sdk = folder / "sdk"
        shutil.copytree(SDK / "include", self.sdk / "include")
        shutil.copytree(SDK / "abi", self.sdk / "abi", ignore=shutil.ignore_patterns("*.py", "__pycache__"))

    def change(self, name, old, new):
        path = self.sdk / name
        text = path.read_text()
        assert text.count(old) == 1, f"{name} has {text.count(old)} times: {old}"
        path.write_text(text.replace(old, new))

    def raise_minor(self):
        minor = check.version_of(self.sdk)[1]
        self.change("include/jobq/abi_version.h", f"kMinor = {minor};", f"kMinor = {minor + 1};")


@pytest.fixture
def copy(tmp_path):
    return Copy(tmp_path)


@pytest.fixture(scope="module")
def compiled():
    """Types and manifest of the unchanged headers."""
    return check.compile_probe(SDK)


def test_the_headers_are_the_abi_that_is_written_down(compiled):
    assert check.incomplete(*compiled) == []
    assert check.check(SDK, check.describe(*compiled), *check.version_of(SDK)) == []


def test_a_changed_file_is_refused(copy, compiled):
    major, minor = check.version_of(copy.sdk)
    written = f"v{major}.{minor}.txt"
    for number in range(minor + 1):  # each minor contains the previous minor
        copy.change(f"abi/v{major}.{number}.txt", "  4 int64_t rank(JobSpec const&, Instant, GroupState const&) const\n", "")
    faults = check.check(copy.sdk, check.describe(*compiled), major, minor)
    assert f"The headers differ from sdk/abi/{written}." in faults


@pytest.mark.parametrize("old, new, named", [
    ("state@32+2,", "", "abi_layout.h lists for storage.JobFilter ['endpoint', 'apiKeyId', 'idPrefix'], the header has"),
    ("failed:3,cancelled:4,", "failed:3,", "abi_layout.h lists for storage.JobState"),
    ("layout.storage.ClaimWant=", "ClaimWant=", "abi_layout.h does not describe ClaimWant for the group storage"),
    ("layout.webhook.DeliveryFailed=", "unlisted=", "abi_layout.h does not describe DeliveryFailed for the group webhook"),
], ids=["a field less", "an enumerator less", "a type of an argument less", "a type of a result less"])
def test_a_layout_that_lists_less_than_there_is_is_refused(compiled, old, new, named):
    types, manifest = compiled
    assert manifest.count(old) == 1
    assert any(fault.startswith(named) for fault in check.incomplete(types, manifest.replace(old, new)))


def test_a_comment_is_no_change(copy):
    copy.change("include/jobq/queue_policy.h", "/// Returns the rank of the job;", "/// Always.\n\n  /// Returns the rank of the job;")
    assert check.run(copy.sdk) == []


@pytest.mark.parametrize("name, old, new, named", [
    ("queue_policy.h", GROUP, EARLY + GROUP, "interface QueuePolicy"),
    ("queue_policy.h", RANK, RANK.replace("Instant now", "Millis now"), "interface QueuePolicy"),
    ("plugin.h", "virtual std::vector<ScriptReport> scripts() const { return {}; }", "", "interface Plugin"),
    ("job.h", "failed = 3,\n  cancelled = 4,", "cancelled = 3,\n  failed = 4,", "storage.JobState"),
    ("rate_limiter.h", "Millis retryAfter{0};", "Instant retryAfter{};", "limiter.RateVerdict"),
    ("plugin.h", "std::filesystem::path dataDir;", "std::string dataDir;", "plugin.PluginEnv"),
], ids=["a virtual before another", "a signature", "a virtual less", "values of enumerators", "a type of equal size",
        "a field of an open type"])
def test_a_change_that_old_plugins_do_not_survive_asks_for_a_major(copy, name, old, new, named):
    copy.change(f"include/jobq/{name}", old, new)
    if name == "job.h":
        copy.change("include/jobq/abi_layout.h", "completed, failed, cancelled, timedOut",
                    "completed, cancelled, failed, timedOut")
    faults = check.run(copy.sdk)
    assert any(named in fault for fault in faults) and check.MAJOR in faults, faults


def test_an_addition_asks_for_a_minor_and_gets_it(copy):
    copy.change("include/jobq/queue_policy.h", RANK, RANK + GUARDED)
    copy.change("include/jobq/plugin.h", "const ReceiverNames* receivers{};",
                "const ReceiverNames* receivers{}; std::int64_t processors{};")
    copy.change("include/jobq/abi_layout.h", "receivers);", "receivers, processors);")
    major, minor = check.version_of(copy.sdk)
    assert check.run(copy.sdk)[1:] == [check.MINOR.format(minor + 1)]
    copy.raise_minor()
    assert check.check(copy.sdk, {}, major, minor + 1)[0].startswith(f"sdk/abi has no v{major}.{minor + 1}.txt")
    assert check.run(copy.sdk, write=True) == []


def test_a_new_virtual_without_a_guard_is_refused(copy):
    copy.change("include/jobq/queue_policy.h", RANK, RANK + "\n  virtual void added() {}\n")
    copy.raise_minor()
    faults = check.run(copy.sdk, write=True)
    assert len(faults) == 1 and "added()" in faults[0] and "not private" in faults[0], faults


def test_a_new_virtual_of_the_host_needs_no_guard(copy):
    line = "virtual void write(LogLevel level, std::string_view event, std::string_view message) noexcept = 0;"
    copy.change("include/jobq/log.h", line, line + "\n  virtual void flush() noexcept {}\n")
    copy.raise_minor()
    assert check.run(copy.sdk, write=True) == []


def test_a_minor_that_breaks_the_one_before_it_is_refused(copy):
    copy.change("include/jobq/queue_policy.h", GROUP, EARLY + GROUP)
    copy.raise_minor()
    faults = check.run(copy.sdk, write=True)
    assert "interface QueuePolicy" in faults[1] and check.MAJOR in faults, faults
