// JSON into Lua and back, against RapidJSON: the output means the same as the input and passes once more unchanged.
// Then the same bytes build values beyond any JSON text, with holes, mixed keys and cycles: each value becomes JSON or
// is refused.
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>

#include "check.h"
#include "jobq/json.h"
#include "plugins/lua/json/json_bridge.h"
#include "plugins/lua/sandbox/sandbox.h"
#include "plugins/lua/script_folder.h"
#include "tests/lua/json_outline.h"
#include "tests/lua/standard_libraries.h"

namespace {

using namespace jobq::lua;

// Lets each script run to its end.
class NoEnd final : public EndCondition {
 public:
  std::optional<std::string> reasonToEnd() override { return std::nullopt; }
};

const jobq::lua::test::StandardLibraries kLibraries;
const ScriptPtr kScript = compile("fuzz", "return function() end", 1U << 20, kLibraries);

// Runs `body` in the sandbox. Returns false if the value was refused.
template <class Body>
bool tried(Body&& body) {
  static std::unique_ptr<Sandbox> sandbox;
  if (!sandbox || sandbox->isSpent())
    sandbox = std::make_unique<Sandbox>(std::size_t{64} << 20, Sandbox::kPlainOfHandlers, kLibraries);
  try {
    NoEnd end;
    sandbox->run(kScript, end, nullptr, body);
  } catch (const ScriptError& error) {
    BELIEVE(error.what()[0] != '\0');
    return false;
  }
  return true;
}

std::string through(std::string_view text) {
  std::string out;
  BELIEVE(tried([&](lua_State* lua) {
    pushJson(lua, text);
    out = toJson(lua, -1);
  }));
  return out;
}

void readText(std::string_view text) {
  const bool isJson = jobq::json::valid(text);
  std::string decoded;
  const bool taken = tried([&](lua_State* lua) {
    lua_getglobal(lua, "json");
    lua_getfield(lua, -1, "decode");
    lua_pushlstring(lua, text.data(), text.size());
    lua_call(lua, 1, 1);
    decoded = toJson(lua, -1);
  });
  if (!isJson) {
    BELIEVE(!taken);
    return;
  }
  const std::string meaning = jobq::lua::test::outlineOf(text);
  // Numbers beyond a double become infinity, which is refused. Lone surrogates are left to the scanner.
  if (meaning.empty()) return;
  if (!taken) {
    BELIEVE(meaning.find("inf") != std::string::npos);
    return;
  }
  BELIEVE(jobq::json::valid(decoded));
  BELIEVE(jobq::lua::test::outlineOf(decoded) == meaning);
  BELIEVE(through(decoded) == decoded);
}

// Runs the bytes as a program for a stack of values, one operation a byte.
void build(lua_State* lua, const std::uint8_t* at, const std::uint8_t* end) {
  lua_newtable(lua);
  while (at != end) {
    if (lua_gettop(lua) > 150) return;
    const std::uint8_t opcode = *at++;
    const auto next = [&] { return at == end ? std::uint8_t{0} : *at++; };
    switch (opcode % 16) {
      case 0: lua_pushnil(lua); break;
      case 1: lua_pushboolean(lua, next() % 2); break;
      case 2: lua_pushinteger(lua, static_cast<std::int8_t>(next())); break;
      case 3: {
        std::uint64_t bits = 0;
        for (int i = 0; i < 8; ++i) bits = bits << 8 | next();
        double number = 0;
        std::memcpy(&number, &bits, sizeof number);
        lua_pushnumber(lua, number);
        break;
      }
      case 4:
      case 5: {
        const std::size_t size = std::min<std::size_t>(next() % 8, static_cast<std::size_t>(end - at));
        lua_pushlstring(lua, reinterpret_cast<const char*>(at), size);
        at += size;
        break;
      }
      case 6: lua_newtable(lua); break;
      case 7: pushJson(lua, "[]"); break;
      case 8: lua_pushlightuserdata(lua, nullptr); break;
      case 9: lua_pushvalue(lua, 1 + next() % lua_gettop(lua)); break;
      case 10: lua_pushcfunction(lua, [](lua_State*) { return 0; }); break;
      case 11: pushJson(lua, "9223372036854775807"); break;
      case 12:
      case 13:  // t[k] = v of the three topmost values, the table lowest
        if (lua_gettop(lua) >= 3 && lua_istable(lua, -3) && !lua_isnil(lua, -2) && lua_rawequal(lua, -2, -2) != 0) {
          lua_rawset(lua, -3);
        }
        break;
      default:  // appends to the table below
        if (lua_gettop(lua) >= 2 && lua_istable(lua, -2)) {
          lua_rawseti(lua, -2, static_cast<lua_Integer>(lua_rawlen(lua, -2)) + 1);
        }
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  readText({reinterpret_cast<const char*>(data), size});
  std::string text;
  const bool taken = tried([&](lua_State* lua) {
    luaL_checkstack(lua, 200, "the program is too long");
    build(lua, data, data + size);
    text = toJson(lua, 1 + lua_gettop(lua) / 2);
  });
  if (!taken) return 0;
  BELIEVE(jobq::json::valid(text));
  BELIEVE(through(text) == text);
  return 0;
}
