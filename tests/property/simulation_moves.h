// The moves of a simulated schedule: each names an act and two numbers as its arguments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace jobq::model {

enum class Act : std::uint8_t {
  submit,
  submitAndClaim,  // by a waiting caller
  await,           // a caller begins to wait for the end of a recent job
  resume,          // the calls continue that wait for the end of a job
  turn,            // a turn of the dispatcher
  start,           // a starting worker becomes ready, or its start fails
  leave,           // a stopping worker ends
  report,          // a worker's progress, chunk or log line
  finish,
  remoteClaim,
  remoteAsk,
  remoteFinish,  // perhaps long after the loss of its job
  cancel,
  retry,
  purge,
  ttl,
  stream,
  sweep,
  deliver,
  advance,
  newLife,  // the node begins another life: the next sweep takes back the jobs of all running workers
  stop,     // an orderly stop, then a start
  crash,    // the power goes at one of the next steps of the disk
};

struct Move {
  Act act{};
  std::uint32_t a = 0;
  std::uint32_t b = 0;
};

std::string text(const Move& move);
std::vector<Move> randomMoves(std::uint64_t seed, std::size_t count, bool canCrash);

}  // namespace jobq::model
