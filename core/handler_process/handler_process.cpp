#include "core/handler_process/handler_process.h"

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "jobq/error.h"

namespace jobq::worker {
namespace {

constexpr std::size_t kMostUnsent = 64UL << 10;  // bytes of unread answers

/// Notifies the descriptor at the stop.
struct Waker {
  void operator()() const { wake.notify(); }
  const WakeDescriptor& wake;
};

void checkCount(const Message& message, std::size_t count) {
  if (message.fields.size() != count) throw MalformedMessage("a message with a wrong number of fields");
}

}  // namespace

bool HandlerProcess::prepare(const std::stop_token& end) {
  if (link_ && link_->isIdle()) return true;
  if (link_) log_.write(LogLevel::warning, "handler.restart", "an idle handler process ended with " + endProcess());
  while (!end.stop_requested()) {
    if (mustPause_) {
      if (!pauses_) pauses_.emplace(clock_, end);
      if (!pauses_->pause()) return false;
    }
    const auto why = start(end);
    if (!why) return true;
    mustPause_ = true;
    if (!end.stop_requested()) log_.write(LogLevel::warning, "handler.restart", "a handler process " + *why);
  }
  return false;
}

// Returns why no process is ready, no value if one is. Throws std::runtime_error as prepare() does.
std::optional<std::string> HandlerProcess::start(const std::stop_token& end) {
  try {
    link_.emplace(clock_);
    link_->post(writeSetup(setup_));
    wake_.clear();
    const std::stop_callback<Waker> waker(end, Waker{wake_});
    if (link_->await(wake_, Instant::max()) != ChildLink::Event::message) {
      return "ended with " + endProcess() + " before it was ready";
    }
    const Message message = link_->extractMessage();
    hasBeenReady_ = hasBeenReady_ || message.kind == MessageKind::ready;
    if (message.kind == MessageKind::ready) return std::nullopt;
    if (message.kind != MessageKind::fault) throw MalformedMessage("a message before it was ready");
    checkCount(message, 1);
    if (!hasBeenReady_) throw std::runtime_error(message.fields[0]);
    (void)endProcess();
    return "cannot make its handler: " + message.fields[0];
  } catch (const MalformedMessage& error) {
    (void)endProcess();
    return std::string("sent ") + error.what();
  } catch (const std::system_error& error) {
    return std::string("cannot start: ") + error.what();
  }
}

std::optional<Outcome> HandlerProcess::run(std::string_view input, JobContext& context) {
  std::string why;
  try {
    if (auto outcome = exchange(input, context)) {
      pauses_.reset();
      return outcome;
    }
    if (!link_) return std::nullopt;
    why = "ended with " + endProcess();
  } catch (const MalformedMessage& error) {
    why = std::string("sent ") + error.what() + " and was killed";
    (void)endProcess();
  }
  log_.write(LogLevel::warning, "handler.lost", "the handler process of " + context.id() + " " + why);
  return std::nullopt;
}

// Returns no value if the process has ended, or was killed because of a slow stop.
std::optional<Outcome> HandlerProcess::exchange(std::string_view input, JobContext& context) {
  link_->post(writeJob(input, context, clock_.now()));
  wake_.clear();
  bool isStopped = false;
  const std::stop_callback<Waker> waker(context.stopToken(), Waker{wake_});
  Instant latest = Instant::max();
  for (;;) {
    switch (link_->await(wake_, latest)) {
      case ChildLink::Event::ended: return std::nullopt;
      case ChildLink::Event::late:
        (void)endProcess();
        log_.write(
            LogLevel::warning, "handler.killed",
            "the handler process of " + context.id() + " was killed, because its handler had not stopped in time");
        return std::nullopt;
      case ChildLink::Event::woken:
        wake_.clear();
        if (!std::exchange(isStopped, true)) link_->post(encodeMessage(MessageKind::stop));
        latest = std::min(latest, clock_.now() + kStopGrace);
        break;
      case ChildLink::Event::message: {
        Message message = link_->extractMessage();
        const bool isEnd = message.kind == MessageKind::completed || message.kind == MessageKind::failed;
        if (isEnd) return readOutcome(std::move(message));
        report(std::move(message), context);
        break;
      }
    }
  }
}

// A process waits for the answer to each report, so a process cannot have many unread answers.
void HandlerProcess::report(Message message, JobContext& context) {
  if (message.kind == MessageKind::line) {
    const LogLine line = readLine(std::move(message));
    return context.log(line.level, line.text);
  }
  if (link_->unsentBytes() > kMostUnsent) throw MalformedMessage("a report before it had read the last answers");
  try {
    if (message.kind == MessageKind::chunk) {
      checkCount(message, 2);
      context.emit(message.fields[0], message.fields[1]);
    } else if (message.kind == MessageKind::progress) {
      checkCount(message, 1);
      context.progress(message.fields[0]);
    } else {
      throw MalformedMessage("a message that does not belong into a run");
    }
    link_->post(encodeMessage(MessageKind::noted));
  } catch (const JobFailed& failure) {
    link_->post(encodeMessage(MessageKind::refused, {failure.what()}));
  }
}

// Kills the rest of the process. Returns the kind of the end.
std::string HandlerProcess::endProcess() {
  mustPause_ = true;
  std::string how = link_->kill();
  link_.reset();
  return how;
}

}  // namespace jobq::worker
