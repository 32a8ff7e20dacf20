// The kinds of moves, and the frequency of each.
#include "moves.h"

#include <array>
#include <random>

namespace jobq::model {
namespace {

/// The weights belong to the setups: one node on memory, one node on a disk, several nodes.
struct Kind {
  Act act;
  const char* name;
  std::array<std::size_t, 3> weights;
};
constexpr std::array kKinds{
    Kind{Act::submit, "submit", {16, 16, 14}},
    Kind{Act::submitAndWait, "submitAndWait", {8, 8, 8}},
    Kind{Act::await, "await", {4, 4, 6}},
    Kind{Act::finish, "finish", {18, 18, 14}},
    Kind{Act::cancel, "cancel", {5, 5, 3}},
    Kind{Act::retry, "retry", {6, 6, 5}},
    Kind{Act::ttl, "ttl", {2, 2, 1}},
    Kind{Act::advance, "advance", {8, 8, 26}},
    Kind{Act::resume, "resume", {6, 6, 0}},
    Kind{Act::turn, "turn", {20, 20, 0}},
    Kind{Act::sweep, "sweep", {8, 8, 0}},
    Kind{Act::startWorker, "startWorker", {10, 10, 0}},
    Kind{Act::endWorker, "endWorker", {4, 4, 0}},
    Kind{Act::report, "report", {6, 6, 0}},
    Kind{Act::remoteClaim, "remoteClaim", {12, 12, 0}},
    Kind{Act::remoteAsk, "remoteAsk", {3, 3, 0}},
    Kind{Act::remoteFinish, "remoteFinish", {10, 10, 0}},
    Kind{Act::purge, "purge", {1, 1, 0}},
    Kind{Act::stream, "stream", {4, 4, 0}},
    Kind{Act::deliver, "deliver", {12, 12, 0}},
    Kind{Act::newLife, "newLife", {3, 3, 0}},
    Kind{Act::powerCut, "powerCut", {0, 3, 0}},
    Kind{Act::stop, "stop", {0, 1, 1}},
    Kind{Act::fault, "fault", {0, 0, 10}},
    Kind{Act::cut, "cut", {0, 0, 4}},
    Kind{Act::outage, "outage", {0, 0, 1}},
    Kind{Act::pause, "pause", {0, 0, 3}},
    Kind{Act::crash, "crash", {0, 0, 2}},
    Kind{Act::start, "start", {0, 0, 5}},
    Kind{Act::hostClock, "hostClock", {0, 0, 1}},
};

}  // namespace

std::string text(const Move& move) {
  return std::string(kKinds[static_cast<std::size_t>(move.act)].name) + " " + std::to_string(move.node) + " " +
         std::to_string(move.a) + " " + std::to_string(move.b);
}

std::vector<Move> randomMoves(std::uint64_t seed, std::size_t count, NodeSetup setup) {
  std::mt19937_64 random(seed);
  std::vector<Act> bag;
  for (const Kind& kind : kKinds) bag.insert(bag.end(), kind.weights[static_cast<std::size_t>(setup)], kind.act);
  const auto number = [&random] { return static_cast<std::uint32_t>(random() >> 40); };
  std::vector<Move> moves;
  for (std::size_t i = 0; i < count; ++i) {
    const Act act = bag[random() % bag.size()];
    const std::uint32_t node = number() % 3;
    const std::uint32_t a = number();
    moves.push_back({act, node, a, number()});
  }
  return moves;
}

}  // namespace jobq::model
