// http.get and http.post from the view of a script's author: the request, the answer, and wrong arguments.
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "http_fixture.h"
#include "jobq/admission_filter.h"

namespace jobq::test {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

TEST_F(LuaHttp, GetsAnAnswer) {
  TinyHttp server([](const TinyRequest&, const TinyConnection& client) {
    client.reply(200, "hello", "Content-TYPE:  text/plain \r\nX-Empty:\r\n");
  });
  EXPECT_EQ(get(server.url("/a%20b/../c?x=1")),
            R"({"body":"hello","headers":{"connection":"close","content-length":"5","content-type":"text/plain",)"
            R"("x-empty":""},"status":200})");
  ASSERT_EQ(server.requests().size(), 1U);
  const TinyRequest request = server.requests()[0];
  EXPECT_EQ(request.method, "GET");
  EXPECT_EQ(request.target, "/a%20b/../c?x=1");
  EXPECT_THAT(request.head, HasSubstr("\r\nUser-Agent: jobq-lua/1\r\n"));
  EXPECT_THAT(request.head, HasSubstr("\r\nConnection: close\r\n"));
}

TEST_F(LuaHttp, EveryStatusIsAnAnswer) {
  TinyHttp server([](const TinyRequest& request, const TinyConnection& client) {
    client.reply(std::stoi(request.target.substr(1)), "why");
  });
  for (const std::string status : {"200", "201", "300", "400", "401", "404", "429", "500", "503", "599"}) {
    EXPECT_THAT(get(server.url("/" + status)),
                AllOf(StartsWith(R"({"body":"why",)"), EndsWith(R"("status":)" + status + "}")));
  }
}

TEST_F(LuaHttp, AnAnswerWithoutABodyMayTellItsLength) {
  configure({{"httpBody", "1024"}});
  TinyHttp server([](const TinyRequest&, const TinyConnection& client) {
    client.send("HTTP/1.1 304 X\r\nContent-Length: 5000\r\n\r\n");
  });
  EXPECT_EQ(get(server.url()), R"({"body":"","headers":{"content-length":"5000"},"status":304})");
}

TEST_F(LuaHttp, RepeatedHeadersAreJoinedAndInterimHeadersDropped) {
  TinyHttp server([](const TinyRequest&, const TinyConnection& client) {
    client.send(
        "HTTP/1.1 103 Early: hints\r\nLink: early\r\n\r\nHTTP/1.1 200 It: is fine\r\nTransfer-Encoding: chunked\r\n"
        "Set-Cookie: a=1\r\nVary: x\r\nset-cookie: b=2\r\n\r\n2\r\nab\r\n3\r\ncde\r\n0\r\nX-Trailer: t\r\n\r\n");
  });
  EXPECT_EQ(get(server.url()),
            R"({"body":"abcde","headers":{"set-cookie":"a=1, b=2","transfer-encoding":"chunked","vary":"x"},)"
            R"("status":200})");
}

TEST_F(LuaHttp, ABodyIsBytes) {
  TinyHttp server(saying(std::string("\0\xff\r\n\x80", 5)));
  EXPECT_EQ(run("local body = http.get(input.url).body return {#body, body:byte(1, -1)}", inputOf(server.url())),
            "[5,0,255,13,10,128]");
  EXPECT_THAT(failureOf("return http.get(input.url).body", inputOf(server.url())), HasSubstr("not UTF-8"));
}

TEST_F(LuaHttp, SendsHeaders) {
  TinyHttp server(saying(""));
  get(server.url(),
      "{headers = {['X-One'] = 'a\\tb', ['x-empty'] = '', ['X-Blank'] = ' ', ['User-Agent'] = 'mine', "
      "Accept = 'text/css', Authorization = 'Bearer x'}}");
  ASSERT_EQ(server.requests().size(), 1U);
  const std::string head = server.requests()[0].head;
  for (const char* line :
       {"X-One: a\tb", "x-empty:", "X-Blank:", "User-Agent: mine", "Accept: text/css", "Authorization: Bearer x"}) {
    EXPECT_THAT(head, HasSubstr(std::string("\r\n") + line + "\r\n"));
  }
  EXPECT_THAT(head, AllOf(Not(HasSubstr("jobq-lua")), Not(HasSubstr("*/*")), Not(HasSubstr("Content-"))));
}

TEST_F(LuaHttp, PostsAStringUnchanged) {
  TinyHttp server(saying("ok"));
  EXPECT_THAT(post(server.url("/in"), "'a\\0\\xff\\r\\n'"), StartsWith(R"({"body":"ok")"));
  post(server.url(), "''", "{headers = {['content-type'] = 'text/csv'}}");
  ASSERT_EQ(server.requests().size(), 2U);
  const TinyRequest request = server.requests()[0];
  EXPECT_EQ(request.method, "POST");
  EXPECT_EQ(request.target, "/in");
  EXPECT_EQ(request.body, std::string("a\0\xff\r\n", 5));
  EXPECT_THAT(request.head, AllOf(Not(HasSubstr("Content-Type")), Not(HasSubstr("Expect"))));
  EXPECT_THAT(server.requests()[1].head,
              AllOf(HasSubstr("\r\ncontent-type: text/csv\r\n"), HasSubstr("\r\nContent-Length: 0\r\n")));
}

TEST_F(LuaHttp, PostsATableAsJson) {
  TinyHttp server(saying("ok"));
  post(server.url(), "{b = {1, 2.5, json.null}, a = 9007199254740993}");
  post(server.url(), "json.array{}", "{headers = {['CONTENT-TYPE'] = 'application/x'}}");
  ASSERT_EQ(server.requests().size(), 2U);
  EXPECT_EQ(server.requests()[0].body, R"({"a":9007199254740993,"b":[1,2.5,null]})");
  EXPECT_THAT(server.requests()[0].head, HasSubstr("\r\nContent-Type: application/json\r\n"));
  EXPECT_EQ(server.requests()[1].body, "[]");
  EXPECT_THAT(server.requests()[1].head,
              AllOf(HasSubstr("\r\nCONTENT-TYPE: application/x\r\n"), Not(HasSubstr("application/json"))));
  EXPECT_THAT(failureOf("http.post(input.url, {f = print})", inputOf(server.url())),
              HasSubstr("a function at .f is not JSON"));
}

TEST_F(LuaHttp, PostsAMegabyte) {
  TinyHttp server([](const TinyRequest& request, const TinyConnection& client) { client.reply(200, request.body); });
  EXPECT_EQ(run("local text = ('0123456789abcdef'):rep(65536) return http.post(input.url, text).body == text",
                inputOf(server.url())),
            "true");
}

TEST_F(LuaHttp, WrongArgumentsAreErrorsOfTheScript) {
  for (const auto& [call, message] : std::map<std::string, std::string>{
           {"http.get()", "bad argument #1 to 'get' (string expected, got no value)"},
           {"http.get(5)", "bad argument #1 to 'get' (string expected, got number)"},
           {"http.get('http://a/', 5)", "bad argument #2 to 'get' (nil or table expected, got number)"},
           {"http.post('http://a/')", "bad argument #2 to 'post' (string or table expected, got no value)"},
           {"http.post('http://a/', 5)", "bad argument #2 to 'post' (string or table expected, got number)"},
           {"http.post('http://a/', '', '')", "bad argument #3 to 'post' (nil or table expected, got string)"},
           {"http.get('http://a/', {header = {}})",
            "options has the unknown field header: headers and timeout are known"},
           {"http.get('http://a/', {1})", "options has the unknown field number: headers and timeout are known"},
           {"http.get('http://a/', {headers = 'X: y'})", "options.headers is not a table"},
           {"http.get('http://a/', {headers = {'X: y'}})", "options.headers has a name that is not a string"},
           {"http.get('http://a/', {headers = {X = 5}})", "the value of the header X is not a string"}}) {
    EXPECT_THAT(failureOf("\n" + call), AllOf(HasSubstr(".lua:2: "), EndsWith(message))) << call;
  }
}

TEST_F(LuaHttp, ATimeoutIsWithinTheServersOwn) {
  configure({{"httpTimeout", "2500"}});
  for (const char* seconds : {"0", "-1", "2.6", "0/0", "1/0", "'1'", "true", "0.0001"}) {
    EXPECT_THAT(failureOf(std::string("http.get('http://a/', {timeout = ") + seconds + "})"),
                EndsWith("options.timeout must be a number of seconds from 0.001 to 2.5 (lua.httpTimeout)"))
        << seconds;
  }
  TinyHttp server(saying("in time"));
  EXPECT_THAT(get(server.url(), "{timeout = 2.5}"), HasSubstr("in time"));
}

TEST_F(LuaHttp, AHeaderCannotBeSmuggledIn) {
  TinyHttp server(saying(""));
  for (const char* header : {"['X\\r\\nY'] = 'z'", "['X Y'] = 'z'", "['X:'] = 'z'", "[''] = 'z'", "['X\\0'] = 'z'",
                             "['\\xc3\\xa4'] = 'z'", "['X;'] = ''"}) {
    EXPECT_THAT(failureOf("http.get(input.url, {headers = {" + std::string(header) + "}})", inputOf(server.url())),
                EndsWith("a header's name has characters that HTTP forbids"))
        << header;
  }
  for (const char* value : {"a\\r\\nEvil: 1", "a\\nEvil: 1", "a\\rEvil: 1", "a\\0b", "\\x7f", "\\x1b[2J"}) {
    EXPECT_THAT(failureOf("http.get(input.url, {headers = {X = '" + std::string(value) + "'}})", inputOf(server.url())),
                EndsWith("the value of the header X has a line break or control character"))
        << value;
  }
  for (const std::string name : {"Host", "content-length", "TRANSFER-ENCODING", "Connection", "Expect", "te", "Trailer",
                                 "Upgrade", "Keep-Alive", "Proxy-Connection"}) {
    EXPECT_THAT(failureOf("http.post(input.url, '', {headers = {['" + name + "'] = '5'}})", inputOf(server.url())),
                EndsWith("the header " + name + " cannot be set by a script"));
  }
  EXPECT_TRUE(server.requests().empty());
}

TEST_F(LuaHttp, HeadersAreBounded) {
  TinyHttp server(saying("ok"));
  const std::string call =
      "local all = {} for i = 1, input.count do all['X-' .. i] = ('x'):rep(input.size) end "
      "return http.get(input.url, {headers = all}).body";
  const auto inputFor = [&](int count, int size) {
    return "{\"url\":" + json::quoted(server.url()) + ",\"count\":" + std::to_string(count) +
           ",\"size\":" + std::to_string(size) + "}";
  };
  EXPECT_EQ(run(call, inputFor(100, 1)), "\"ok\"");
  EXPECT_EQ(run(call, inputFor(1, 65'000)), "\"ok\"");
  EXPECT_THAT(failureOf(call, inputFor(101, 1)), EndsWith("options.headers has more than 100 headers or 64 KB"));
  EXPECT_THAT(failureOf(call, inputFor(1, 65'536)), EndsWith("options.headers has more than 100 headers or 64 KB"));
}

TEST_F(LuaHttp, AWrongAddressIsAFault) {
  const std::string longest = "http://127.0.0.1:9/" + std::string(8'192 - 19, 'a');
  for (const std::string& url :
       {std::string("file:///etc/passwd"), std::string("ftp://example.com/a"), std::string("gopher://127.0.0.1/"),
        std::string("a.html"), std::string("//host/a"), std::string(), std::string("http://"),
        std::string("http:/host"), std::string("http:///host"), std::string("http://a b/"), std::string("http://a/b c"),
        std::string("http://a\\@b/"), std::string("http://a\0b/", 11), std::string("http://a/\r\nX: y"),
        std::string("http://a/\x7f"), std::string("http://a:99999/"), std::string("http://@/"), longest + "a"}) {
    EXPECT_EQ(get(url), "the URL is not an absolute http or https URL with a host") << url;
  }
  EXPECT_EQ(get(longest), "connection refused");
}

TEST_F(LuaHttp, IsOffUnlessSwitchedOn) {
  TinyHttp server(saying(""));
  configure({{"http", "false"}});
  EXPECT_THAT(failureOf("return http.get(input.url)", inputOf(server.url())),
              AllOf(StartsWith("script"), EndsWith(".lua:1: http is switched off: set lua.http = true")));
  EXPECT_THAT(failureOf("return http.post()"), EndsWith(".lua:1: http is switched off: set lua.http = true"));
  EXPECT_TRUE(server.requests().empty());
}

TEST_F(LuaHttp, NoScriptChangesIt) {
  EXPECT_THAT(failureOf("http.get = print"), HasSubstr("the libraries cannot be changed"));
  EXPECT_EQ(run("local names = {} for name in pairs(http) do names[#names + 1] = name end return #names"), "0");
}

TEST_F(LuaHttp, FiltersHaveNone) {
  const auto filters = load<AdmissionFilterFactory>({{"http", "true"}});
  const auto filter = filters->make(write("return function(job) return false, tostring(http) end"));
  const Decision verdict = filter->review({"lua", "key", "{}", JobPolicy(), {}});
  ASSERT_TRUE(std::holds_alternative<Refuse>(verdict));
  EXPECT_EQ(std::get<Refuse>(verdict).message, "nil");
}

TEST_F(LuaHttp, AScriptMayGiveItANameBeforeAnyJob) {
  TinyHttp server(saying("named"));
  FakeJobContext job;
  const auto make = [this](const std::string& text) { return handlers().make({"lua", "node-1", {}, write(text)}); };
  EXPECT_EQ(make("local get = http.get return function(input) return get(input.url).body end")
                ->run(inputOf(server.url()), job),
            "\"named\"");
  EXPECT_THAT([&] { make("http.get('http://127.0.0.1/') return print"); },
              testing::ThrowsMessage<std::exception>(HasSubstr("call http inside the returned function")));
  const auto filters = load<AdmissionFilterFactory>({});
  const std::string named = "local take = quota.take return function(job) return take('a', 1, 1) end";
  EXPECT_TRUE(
      std::holds_alternative<Accept>(filters->make(write(named))->review({"lua", "key", "{}", JobPolicy(), {}})));
  EXPECT_EQ(filters->fault(write("quota.take('a', 1, 1) return print")), std::nullopt);  // a trial takes nothing
}

TEST_F(LuaHttp, WorksInACoroutine) {
  TinyHttp server(saying("from afar"));
  EXPECT_EQ(run("return coroutine.wrap(function() return http.get(input.url).body end)()", inputOf(server.url())),
            "\"from afar\"");
}

TEST_F(LuaHttp, EightHandlersCallAtOnce) {
  constexpr int kHandlers = 8;
  std::mutex mutex;
  std::condition_variable changed;
  int waiting = 0;
  // Answers no request before all requests have arrived.
  TinyHttp server([&](const TinyRequest& request, const TinyConnection& client) {
    std::unique_lock lock(mutex);
    ++waiting;
    changed.notify_all();
    changed.wait_for(lock, testkit::kHangDeadline, [&] { return waiting == kHandlers; });
    client.reply(waiting == kHandlers ? 200 : 500, request.target);
  });
  std::vector<std::future<std::string>> outputs;
  std::vector<std::unique_ptr<JobHandler>> workers;
  for (int i = 0; i < kHandlers; ++i)
    workers.push_back(worker("local a = http.get(input.url) return a.status .. a.body"));
  for (int i = 0; i < kHandlers; ++i) {
    outputs.push_back(std::async(std::launch::async, [&, i] {
      FakeJobContext job;
      return workers[static_cast<std::size_t>(i)]->run(inputOf(server.url("/" + std::to_string(i))), job);
    }));
  }
  for (int i = 0; i < kHandlers; ++i) {
    EXPECT_EQ(testkit::resultOf("a handler that calls", outputs[static_cast<std::size_t>(i)]),
              "\"200/" + std::to_string(i) + "\"");
  }
}

}  // namespace
}  // namespace jobq::test
