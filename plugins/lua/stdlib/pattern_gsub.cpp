// string.gsub.
#include "stdlib/pattern_call.h"

namespace jobq::lua {

namespace {

constexpr int kReplacement = 3;
// Steps charged for a call of a function or a lookup in a table, beside the steps counted inside.
constexpr std::uint64_t kCallSteps = 200;
// An __index chain may be as long as a thousand large tables. The steps force a check of the deadline each time.
constexpr std::uint64_t kChainSteps = 20'000;

// A call of gsub. The texts and the replacement keep their places on the stack.
class Substitution {
 public:
  explicit Substitution(lua_State* lua)
      : lua_(lua), host_(lua), subject_(checkText(lua, 1)), pattern_(checkText(lua, 2)), kind_(lua_type(lua, 3)) {
    most_ = luaL_optinteger(lua, 4, static_cast<lua_Integer>(subject_.size()) + 1);
    const bool usable = kind_ == LUA_TNUMBER || kind_ == LUA_TSTRING || kind_ == LUA_TFUNCTION || kind_ == LUA_TTABLE;
    luaL_argexpected(lua, usable, kReplacement, "string/function/table");
    if (kind_ == LUA_TNUMBER || kind_ == LUA_TSTRING) template_ = checkText(lua, kReplacement);
  }

  int run();

 private:
  bool replace(Matcher& matcher, const char* begin, const char* end);
  void fillTemplate(Matcher& matcher, const char* begin, const char* end);
  void fillEscape(Matcher& matcher, char escape, const char* begin, const char* end);

  lua_State* const lua_;
  LuaHost host_;
  const std::string_view subject_;
  const std::string_view pattern_;
  const int kind_;
  std::string_view template_;
  lua_Integer most_ = 0;
  luaL_Buffer out_;
};

int Substitution::run() {
  const bool anchored = !pattern_.empty() && pattern_.front() == '^';
  Matcher matcher(host_, subject_, pattern_.substr(anchored ? 1 : 0));
  const char* at = subject_.data();
  const char* const end = at + subject_.size();
  const char* kept = at;  // the subject is not yet copied from here on
  const char* last = nullptr;
  bool changed = false;
  lua_Integer count = 0;
  luaL_buffinit(lua_, &out_);
  while (count < most_) {
    const char* to = matcher.matchAt(at);
    // An empty match directly behind the last match is no match.
    if (to != nullptr && to != last) {
      ++count;
      luaL_addlstring(&out_, kept, static_cast<std::size_t>(at - kept));
      const bool replaced = replace(matcher, at, to);
      kept = replaced ? to : at;
      changed |= replaced;
      at = last = to;
    } else if (at != end) {
      ++at;
    } else {
      break;
    }
    if (anchored) break;
  }
  if (changed) {
    luaL_addlstring(&out_, kept, static_cast<std::size_t>(end - kept));
    luaL_pushresult(&out_);
  } else {
    lua_pushvalue(lua_, 1);
  }
  lua_pushinteger(lua_, count);
  matcher.meter().flush();
  return 2;
}

// Adds the replacement of the match. Returns false if the match stays unchanged.
bool Substitution::replace(Matcher& matcher, const char* begin, const char* end) {
  if (kind_ == LUA_TFUNCTION) {
    matcher.meter().charge(kCallSteps);
    matcher.meter().flush();
    lua_pushvalue(lua_, kReplacement);
    lua_call(lua_, pushCaptures(lua_, matcher, begin, end), 1);
  } else if (kind_ == LUA_TTABLE) {
    const bool hasMetatable = lua_getmetatable(lua_, kReplacement) != 0;
    if (hasMetatable) lua_pop(lua_, 1);
    matcher.meter().charge(hasMetatable ? kChainSteps : kCallSteps);
    pushCapture(lua_, matcher, 0, begin, end);
    lua_gettable(lua_, kReplacement);
  } else {
    fillTemplate(matcher, begin, end);
    return true;
  }
  if (lua_toboolean(lua_, -1) == 0) {
    lua_pop(lua_, 1);
    return false;
  }
  if (lua_isstring(lua_, -1) == 0) luaL_error(lua_, "invalid replacement value (a %s)", luaL_typename(lua_, -1));
  luaL_addvalue(&out_);
  return true;
}

// A template may be long and add no text, so each piece of the template is charged.
void Substitution::fillTemplate(Matcher& matcher, const char* begin, const char* end) {
  std::string_view rest = template_;
  while (true) {
    const std::size_t plain = rest.find('%');
    const std::string_view text = rest.substr(0, plain);
    matcher.meter().charge(text.size() + 1);
    luaL_addlstring(&out_, text.data(), text.size());
    if (plain == std::string_view::npos) return;
    fillEscape(matcher, plain + 1 < rest.size() ? rest[plain + 1] : '\0', begin, end);
    rest.remove_prefix(plain + 2);
  }
}

void Substitution::fillEscape(Matcher& matcher, char escape, const char* begin, const char* end) {
  if (escape == '%') {
    luaL_addchar(&out_, '%');
  } else if (escape == '0') {
    matcher.meter().charge(static_cast<std::uint64_t>(end - begin));
    luaL_addlstring(&out_, begin, static_cast<std::size_t>(end - begin));
  } else if ('1' <= escape && escape <= '9') {
    const Capture capture = readCapture(lua_, matcher, escape - '1', begin, end);
    if (capture.size == Capture::kPosition) {
      lua_pushinteger(lua_, capture.begin - subject_.data() + 1);
      luaL_addvalue(&out_);
    } else {
      luaL_addlstring(&out_, capture.begin, static_cast<std::size_t>(capture.size));
    }
  } else {
    luaL_error(lua_, "invalid use of '%c' in replacement string", '%');
  }
}

}  // namespace

int substitute(lua_State* lua) { return Substitution(lua).run(); }

}  // namespace jobq::lua
