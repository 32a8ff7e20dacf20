#include "core/storage_wait.h"

#include <optional>
#include <utility>

#include "core/http/api/error_response.h"
#include "core/http/api/exchange.h"
#include "core/http/transport/blocking_request.h"
#include "core/http/transport/budget.h"
#include "core/http/transport/request_handler.h"
#include "core/http/transport/server.h"

namespace jobq {
namespace {

constexpr Millis kPause{500};
constexpr char kReason[] = "the server waits for its storage, which cannot be reached yet; its log says why";

/// Answers a single request of the wait.
class WaitingHandler final : public RequestHandler {
 public:
  void handleRequest(Poco::Net::HTTPServerRequest& request, Poco::Net::HTTPServerResponse& response) override {
    const std::string& target = request.getURI();
    const std::string path = target.substr(0, target.find('?'));
    ThreadWaits none;  // the answer is sent at once
    serveExtended(request, response, none, [&](RequestExtension& extension) {
      Exchange(request, response, extension)
          .send(path == "/healthz" ? ApiResponse{200, R"({"status":"alive"})"} : unavailable(path, kReason));
      return Progress::answered;
    });
  }
};

class WaitingHandlers final : public RequestHandlerFactory {
 public:
  RequestHandler* createRequestHandler(const Poco::Net::HTTPServerRequest&) override { return new WaitingHandler; }
  std::string errorBody(std::string_view sentence) const override { return errorResponse("", 400, sentence).body; }
};

/// The server at the address of the real server, until its destruction.
class WaitingServer {
 public:
  WaitingServer(const ServerConfig& config, Log& log) : server_(config, handlers_, places_, log) { server_.start(); }

 private:
  WaitingHandlers handlers_;
  Budget places_{1};  // no body is read
  HttpServer server_;
};

}  // namespace

std::unique_ptr<Storage> StorageWait::open(const Config& config, PluginInstances& instances) {
  const Instant until = clock_.now() + config.storageWait;
  for (std::optional<WaitingServer> server;;) {
    try {
      return instances.makeStorage();
    } catch (const OutcomeUnknown& error) {
      if (clock_.now() >= until) throw;
      if (!server) {
        log_.write(LogLevel::warning, "storage.wait",
                   std::string(error.what()) + "; the start is repeated for up to " +
                       std::to_string(config.storageWait.count() / 1'000) + " s (storage.wait)");
        server.emplace(config.server, log_);
      }
    }
    if (stop_.await(kPause)) throw StoppedBeforeStart();
  }
}

}  // namespace jobq
