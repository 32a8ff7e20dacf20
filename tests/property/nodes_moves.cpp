// The kinds of moves, and the frequency of each.
#include "nodes_moves.h"

#include <array>
#include <random>

namespace jobq::model {
namespace {

struct Kind {
  NodeAct act;
  const char* name;
  int weight;
};
constexpr std::array kKinds{
    Kind{NodeAct::submit, "submit", 14}, Kind{NodeAct::submitAndWait, "submitAndWait", 8},
    Kind{NodeAct::await, "await", 6},    Kind{NodeAct::finish, "finish", 14},
    Kind{NodeAct::cancel, "cancel", 3},  Kind{NodeAct::retry, "retry", 5},
    Kind{NodeAct::ttl, "ttl", 1},        Kind{NodeAct::advance, "advance", 26},
    Kind{NodeAct::fault, "fault", 10},   Kind{NodeAct::cut, "cut", 4},
    Kind{NodeAct::outage, "outage", 1},  Kind{NodeAct::pause, "pause", 3},
    Kind{NodeAct::crash, "crash", 2},    Kind{NodeAct::stop, "stop", 1},
    Kind{NodeAct::start, "start", 5},    Kind{NodeAct::hostClock, "hostClock", 1},
};

}  // namespace

std::string text(const NodeMove& move) {
  return std::string(kKinds[static_cast<std::size_t>(move.act)].name) + " " + std::to_string(move.node) + " " +
         std::to_string(move.a) + " " + std::to_string(move.b);
}

std::vector<NodeMove> randomNodeMoves(std::uint64_t seed, std::size_t count) {
  std::mt19937_64 random(seed);
  std::vector<NodeAct> bag;
  for (const Kind& kind : kKinds) bag.insert(bag.end(), static_cast<std::size_t>(kind.weight), kind.act);
  const auto number = [&random] { return static_cast<std::uint32_t>(random() >> 40); };
  std::vector<NodeMove> moves;
  for (std::size_t i = 0; i < count; ++i) {
    const NodeAct act = bag[random() % bag.size()];
    const std::uint32_t node = number() % 3;
    const std::uint32_t a = number();
    moves.push_back({act, node, a, number()});
  }
  return moves;
}

}  // namespace jobq::model
