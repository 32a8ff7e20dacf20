// The rules of /stream.
#include <algorithm>
#include <cstddef>

#include "rule_parts.h"

namespace jobq::fault {
namespace {

std::string told(const Page& page) {
  return "/stream" + std::string(page.consumes ? "" : "?offset=0") + " in life " + std::to_string(page.life) +
         " told of attempt " + std::to_string(page.attempt) + ", " + std::string(nameOf(page.state));
}

/// The chunks of an attempt handed out so far, page by page.
class Stream {
 public:
  Stream(const JobHistory& job, Faults& faults) : job_(job), faults_(faults) {}

  void add(const Page& page) {
    if (!page.read) {
      mayHaveGap_ = true;
      return;
    }
    if (page.attempt < attempt_) {
      faults_.push_back(told(page) + ", after attempt " + std::to_string(attempt_));
      return;
    }
    if (page.attempt > attempt_) {
      attempt_ = page.attempt;
      next_ = 0;
      hasGap_ = false;
    }
    for (const Piece& piece : page.pieces) add(page, piece);
    hasGap_ = hasGap_ || mayHaveGap_;
    mayHaveGap_ = false;
    if (page.state == JobState::completed && next_ != job_.plan.chunks && !hasGap_) {
      faults_.push_back(told(page) + ", with " + std::to_string(next_) + " of " + std::to_string(job_.plan.chunks) +
                        " chunks handed out");
    }
  }

 private:
  void add(const Page& page, const Piece& piece) {
    if (piece.place < next_) {
      faults_.push_back(told(page) + ", and handed out chunk " + std::to_string(piece.place) + " again");
    } else if (piece.place > next_ && !mayHaveGap_) {
      faults_.push_back(told(page) + ", and skipped chunk " + std::to_string(next_));
    }
    next_ = std::max(next_, piece.place + 1);
  }

  const JobHistory& job_;
  Faults& faults_;
  std::uint32_t attempt_ = 0;
  std::uint32_t next_ = 0;
  bool mayHaveGap_ = false;  // an answer was lost since the last page
  bool hasGap_ = false;      // another page of this attempt came after the loss
};

void piecesAreItsOwn(const JobHistory& job, const Page& page, Faults& faults) {
  for (const Piece& piece : page.pieces) {
    if (piece.number != job.plan.number) {
      faults.push_back(told(page) + ", with a chunk of number " + std::to_string(piece.number));
    } else if (piece.attempt != page.attempt) {
      faults.push_back(told(page) + ", with a chunk of attempt " + std::to_string(piece.attempt));
    }
  }
}

/// After the end all chunks of the ended attempt are there, in order.
void endIsWhole(const JobHistory& job, const Page& page, Faults& faults) {
  for (std::size_t i = 0; i < page.pieces.size(); ++i) {
    if (page.pieces[i].place == i) continue;
    faults.push_back(told(page) + ", with chunk " + std::to_string(page.pieces[i].place) + " at place " +
                     std::to_string(i));
  }
  if (page.state != JobState::completed) return;
  if (page.pieces.size() != job.plan.chunks) {
    faults.push_back(told(page) + ", with " + std::to_string(page.pieces.size()) + " chunks of " +
                     std::to_string(job.plan.chunks));
  }
  const bool returned = std::any_of(job.runs.begin(), job.runs.end(), [&page](const Run& run) {
    return run.attempt == page.attempt && run.end == Run::End::output;
  });
  if (!returned) faults.push_back(told(page) + ", which has returned no output");
}

}  // namespace

void streamsAreWhole(const JobHistory& job, Faults& faults) {
  Stream stream(job, faults);
  for (const Page& page : job.pages) {
    piecesAreItsOwn(job, page, faults);
    if (page.consumes) stream.add(page);
    if (!page.consumes && page.read) endIsWhole(job, page, faults);
  }
}

}  // namespace jobq::fault
