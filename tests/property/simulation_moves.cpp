// The kinds of moves, and the frequency of each.
#include "simulation_moves.h"

#include <array>
#include <random>

namespace jobq::model {
namespace {

struct Kind {
  Act act;
  const char* name;
  int weight;
};
constexpr std::array kKinds{
    Kind{Act::submit, "submit", 16},      Kind{Act::submitAndClaim, "submitAndClaim", 8},
    Kind{Act::await, "await", 4},         Kind{Act::resume, "resume", 6},
    Kind{Act::turn, "turn", 20},          Kind{Act::start, "start", 10},
    Kind{Act::leave, "leave", 4},         Kind{Act::report, "report", 6},
    Kind{Act::finish, "finish", 18},      Kind{Act::remoteClaim, "remoteClaim", 12},
    Kind{Act::remoteAsk, "remoteAsk", 3}, Kind{Act::remoteFinish, "remoteFinish", 10},
    Kind{Act::cancel, "cancel", 5},       Kind{Act::retry, "retry", 6},
    Kind{Act::purge, "purge", 1},         Kind{Act::ttl, "ttl", 2},
    Kind{Act::stream, "stream", 4},       Kind{Act::sweep, "sweep", 8},
    Kind{Act::deliver, "deliver", 12},    Kind{Act::advance, "advance", 8},
    Kind{Act::newLife, "newLife", 3},     Kind{Act::stop, "stop", 1},
    Kind{Act::crash, "crash", 3},
};

}  // namespace

std::string text(const Move& move) {
  return std::string(kKinds[static_cast<std::size_t>(move.act)].name) + " " + std::to_string(move.a) + " " +
         std::to_string(move.b);
}

std::vector<Move> randomMoves(std::uint64_t seed, std::size_t count, bool canCrash) {
  std::mt19937_64 random(seed);
  std::vector<Act> bag;
  for (const Kind& kind : kKinds) {
    if (canCrash || kind.act < Act::stop) bag.insert(bag.end(), static_cast<std::size_t>(kind.weight), kind.act);
  }
  std::vector<Move> moves;
  const auto number = [&random] { return static_cast<std::uint32_t>(random() >> 40); };
  for (std::size_t i = 0; i < count; ++i) {
    const Act act = bag[random() % bag.size()];
    const std::uint32_t a = number();
    moves.push_back({act, a, number()});
  }
  return moves;
}

}  // namespace jobq::model
