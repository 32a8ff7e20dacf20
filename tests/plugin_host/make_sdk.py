"""Writes a copy of the sdk's headers with one change: make_sdk.py <from> <to> reworded|next|other_layout.

reworded       every comment is gone, lines are indented and spaced differently: no change for the ABI.
next           the next minor: one more virtual in QueuePolicy, a field at the end of PluginEnv, a type more.
other_layout   a field of JobPolicy is wider: a change that needs a major.
"""
import pathlib
import re
import sys

SUMMARY = """
  /// Since the next minor.
  std::string summary(const JobSpec& job) const {
    return abiMinor() >= MINOR ? doSummary(job).text : std::string("no summary");
  }

 private:
  virtual Summary doSummary(const JobSpec& job) const { return {"summary of " + job.id}; }
};
"""


def replaced(text, old, new):
    if text.count(old) != 1:
        sys.exit(f"make_sdk.py: {old!r} is {text.count(old)} times in the header, not once")
    return text.replace(old, new)


def reworded(texts):
    for name, text in texts.items():
        text = re.sub(r"^[ \t]*//.*\n", "", text, flags=re.M)
        text = re.sub(r"[ \t]{2,}//[^\"\n]*$", "", text, flags=re.M)
        text = re.sub(r"^( +)", r"\1\1", text, flags=re.M)
        texts[name] = "// Another comment.\n" + re.sub(r";\n", ";\n\n", text)


def next_minor(texts):
    minor = int(re.search(r"kMinor = (\d+);", texts["abi_version.h"])[1])
    texts["abi_version.h"] = replaced(texts["abi_version.h"], f"kMinor = {minor};", f"kMinor = {minor + 1};")
    policy = replaced(texts["queue_policy.h"], "\nnamespace jobq {\n",
                      "\nnamespace jobq {\n\nstruct Summary {\n  std::string text;\n};\n")
    end = "\n}  // namespace jobq"
    texts["queue_policy.h"] = replaced(policy, "\n};\n" + end, SUMMARY.replace("MINOR", str(minor + 1)) + end)
    texts["plugin.h"] = re.sub(r"(receivers\{\};.*\n)", r"\1  std::int64_t processors{2};\n", texts["plugin.h"])
    layout = replaced(texts["abi_layout.h"], "receivers);", "receivers, processors);")
    texts["abi_layout.h"] = replaced(layout, "  JOBQ_CLOSED(QueuePolicy);\n",
                                     "  JOBQ_CLOSED(QueuePolicy);\n  JOBQ_CLOSED(Summary, text);\n")


def other_layout(texts):
    texts["job.h"] = replaced(texts["job.h"], "std::int32_t priority", "std::int64_t priority")


def main():
    source, target = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    texts = {path.name: path.read_text() for path in source.glob("*.h")}
    {"reworded": reworded, "next": next_minor, "other_layout": other_layout}[sys.argv[3]](texts)
    target.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (target / name).write_text(text)


main()
