// A handler for tests of streaming and releases: emits the chunks described by its input, and shows the env given at
// its construction.
//
// input: {"pieces":{"0":{"chunk":<any>,"metrics":{...},"times":2,"pauseMs":10},"1":...},"text":3000000,"then":<any>}
// - `pieces`: each piece is emitted `times` times, each time after a pause of `pauseMs` on the server's clock.
// - `text`: emits one string of two-byte characters with this number of bytes.
// - `badChunk`, `badMetrics`: emit an invalid chunk, or a chunk with invalid metrics.
// - `then`: the output. `outputBytes` replaces the output by a string with this number of bytes.
// - `show`: outputs the variable of the env with this name.
// env:
// - BROKEN: the construction fails for this reason.
// - WITNESS: a file; the handler appends "made NAME" and "gone NAME" to the file, with NAME of the env.
#include <fstream>
#include <map>
#include <ostream>

#include "jobq/abi.h"
#include "jobq/error.h"
#include "jobq/job_handler.h"
#include "jobq/json.h"

namespace {

using jobq::json::Document;

Document parse(std::string_view text) { return std::get<Document>(jobq::json::read(text)); }

std::int64_t integer(const Document& from, std::string_view key, std::int64_t otherwise) {
  const auto value = from.find(key);
  return value ? jobq::json::toInteger(*value).value_or(otherwise) : otherwise;
}

class Scripted final : public jobq::JobHandler {
 public:
  Scripted(jobq::Clock& clock, std::map<std::string, std::string> env) : clock_(clock), env_(std::move(env)) {
    if (env_.contains("BROKEN")) throw jobq::JobFailed(env_["BROKEN"]);
    note("made");
  }
  ~Scripted() override { note("gone"); }

  std::string run(std::string_view input, jobq::JobContext& context) override {
    const Document script = parse(input);
    if (const auto pieces = script.find("pieces")) {
      // The pieces are members with numbers as keys, because an array has no members to ask for.
      const Document list = parse(pieces->raw);
      for (int i = 0; const auto piece = list.find(std::to_string(i)); ++i) emitPiece(parse(piece->raw), context);
    }
    if (const auto bytes = integer(script, "text", 0); bytes > 0) {
      std::string text = "\"";
      while (text.size() <= static_cast<std::size_t>(bytes)) text += "\xc3\xa9";
      context.emit(text + '"');
    }
    if (const auto bad = script.find("badChunk")) context.emit(jobq::json::decode(bad->raw));
    if (const auto bad = script.find("badMetrics")) context.emit("1", jobq::json::decode(bad->raw));
    if (const auto bytes = integer(script, "outputBytes", 0); bytes > 1) {
      return '"' + std::string(static_cast<std::size_t>(bytes - 2), 'x') + '"';
    }
    if (const auto name = script.find("show")) return jobq::json::quoted(env_[jobq::json::decode(name->raw)]);
    const auto then = script.find("then");
    return then ? std::string(then->raw) : "null";
  }

 private:
  // Writes one short line in one write: the lines of several workers do not mix.
  void note(const std::string& what) {
    if (!env_.contains("WITNESS")) return;
    std::ofstream(env_["WITNESS"], std::ios::app) << (what + " " + env_["NAME"] + "\n") << std::flush;
  }

  void emitPiece(const Document& piece, jobq::JobContext& context) {
    const auto metrics = piece.find("metrics");
    for (std::int64_t i = integer(piece, "times", 1); i > 0; --i) {
      pause(jobq::Millis(integer(piece, "pauseMs", 0)), context);
      context.emit(piece.find("chunk")->raw, metrics ? metrics->raw : std::string_view());
    }
  }

  void pause(jobq::Millis duration, jobq::JobContext& context) {
    const std::stop_callback wake(context.stopToken(), [this] {
      jobq::Lock lock(mutex_);
      changed_.notifyAll();
    });
    const jobq::Instant end = clock_.now() + duration;
    jobq::Lock lock(mutex_);
    while (clock_.now() < end && !context.stopToken().stop_requested()) clock_.waitUntil(mutex_, changed_, end);
    if (context.stopToken().stop_requested()) throw jobq::JobFailed("stopped");
  }

  jobq::Clock& clock_;
  std::map<std::string, std::string> env_;
  jobq::Mutex mutex_;
  jobq::Condition changed_;
};

class Factory final : public jobq::HandlerFactory {
 public:
  explicit Factory(const jobq::PluginEnv& env) : clock_(env.clock) {}
  std::unique_ptr<jobq::JobHandler> make(const jobq::HandlerEnv& env) override {
    return std::make_unique<Scripted>(clock_, env.variables);
  }

 private:
  jobq::Clock& clock_;
};

constexpr jobq::abi::Entry kEntries[] = {jobq::abi::entry<jobq::HandlerFactory, Factory>("scripted", "1.0.0")};

}  // namespace

JOBQ_PLUGIN(kEntries)
