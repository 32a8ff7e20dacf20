// A job's history as lines for a human.
#include <algorithm>
#include <cstdio>

#include "history_rules.h"

namespace jobq::fault {
namespace {

struct Line {
  Nanos at;
  std::string text;
};

class Lines {
 public:
  explicit Lines(Nanos start) : start_(start) {}

  void add(Nanos at, int life, const std::string& words) {
    char stamp[64];
    std::snprintf(stamp, sizeof stamp, "  %+10.3f ms life %d ", static_cast<double>(at - start_) / 1e6, life);
    lines_.push_back({at, stamp + words + "\n"});
  }

  std::string joined() {
    std::stable_sort(lines_.begin(), lines_.end(), [](const Line& a, const Line& b) { return a.at < b.at; });
    std::string all;
    for (const Line& line : lines_) all += line.text;
    return all;
  }

 private:
  const Nanos start_;
  std::vector<Line> lines_;
};

const char* nameOf(Run::End end) {
  switch (end) {
    case Run::End::none: return "nothing";
    case Run::End::output: return "an output";
    case Run::End::failed: return "a failure";
    case Run::End::stopped: return "a stop";
  }
  return "";
}

const char* nameOf(Order::Effect effect) {
  switch (effect) {
    case Order::Effect::done: return "done";
    case Order::Effect::refused: return "refused";
    case Order::Effect::unknown: return "not answered";
  }
  return "";
}

const char* nameOf(Order::Command command) {
  switch (command) {
    case Order::Command::cancel: return "/cancel";
    case Order::Command::retry: return "/retry";
    case Order::Command::purge: return "/purge-queue";
    case Order::Command::ttl: return "/status?ttl=";
  }
  return "";
}

std::string between(const Span& span) {
  char text[64];
  std::snprintf(text, sizeof text, " (the answer took %.3f ms)", static_cast<double>(span.answered - span.asked) / 1e6);
  return text;
}

}  // namespace

std::string describe(const JobHistory& job) {
  Lines lines(job.sent.asked);
  lines.add(job.sent.asked, job.life, std::string(job.plan.sync ? "/runsync" : "/run") + " asked");
  lines.add(job.sent.answered, job.life, job.acknowledged ? "acknowledged" : "no whole answer");
  for (const Run& run : job.runs) {
    lines.add(run.began, run.life, "attempt " + std::to_string(run.attempt) + " began");
    if (run.end != Run::End::none) {
      lines.add(run.ended, run.life, "attempt " + std::to_string(run.attempt) + " ended with " + nameOf(run.end));
    }
  }
  for (const Sight& sight : job.sights) {
    std::string words = "seen " + std::string(jobq::nameOf(sight.state));
    if (sight.whole) words += " retries " + std::to_string(sight.retries);
    if (!sight.output.empty()) words += " output " + sight.output;
    if (!sight.error.empty()) words += " error \"" + sight.error + "\"";
    lines.add(sight.span.answered, sight.life, words + between(sight.span));
  }
  for (const Order& order : job.orders) {
    lines.add(order.span.answered, order.life,
              std::string(nameOf(order.command)) + " " + nameOf(order.effect) + between(order.span));
  }
  for (const Absence& absence : job.absences)
    lines.add(absence.span.answered, absence.life, "404" + between(absence.span));
  for (const Page& page : job.pages) {
    std::string words = page.read ? "/stream: " + std::string(jobq::nameOf(page.state)) : "/stream without an answer";
    if (page.read) words += " attempt " + std::to_string(page.attempt) + ", chunks";
    for (const Piece& piece : page.pieces)
      words += " " + std::to_string(piece.attempt) + "#" + std::to_string(piece.place);
    lines.add(page.span.answered, page.life, words + (page.consumes ? "" : " (offset 0)") + between(page.span));
  }
  return "job " + job.id + ", number " + std::to_string(job.plan.number) + " at " + job.plan.endpoint + ", works " +
         std::to_string(job.plan.workMs) + " ms\n" + lines.joined();
}

}  // namespace jobq::fault
