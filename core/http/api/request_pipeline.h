// The request pipeline: the stages of a request in their order, from the head to the answer.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/auth/api_keys.h"
#include "core/http/api/api_request.h"
#include "core/http/api/body_memory.h"
#include "core/http/api/cors.h"
#include "core/http/api/exchange.h"
#include "core/http/api/router.h"
#include "core/http/transport/budget.h"
#include "core/http/transport/request_handler.h"
#include "core/limits/rate_limit_gate.h"
#include "jobq/log.h"

namespace jobq {

class EndpointRegistry;
class LaterSubmissions;

/// Any number of threads, one request each.
class RequestPipeline final : public RequestHandlerFactory {
 public:
  using Head = Poco::Net::HTTPServerRequest;

  /// A request on its way through the stages. `refusal` is set as soon as a stage refuses the request or has the
  /// answer.
  struct RequestContext {
    ApiRequest apiRequest;
    const Route* route = nullptr;  ///< null: the request is refused
    std::optional<ApiResponse> refusal;
    const RefusalChange* refusals = nullptr;  ///< the answer to a refusal; null: the refusal itself
    std::unique_ptr<PendingCall> pending;     ///< set while the route waits, or its answer is open
    bool isOpen = false;                      ///< the head of the answer was sent, and the body goes on
    bool isLate = false;                      ///< the body did not come together with the head
    bool mayBlock = true;                     ///< of the thread that serves the request now
    bool needsThread = false;  ///< a stage would have to block, on a thread that must not; the later stages did not run
    /// Time of the last check of the key.
    std::chrono::steady_clock::time_point checkedAt = std::chrono::steady_clock::now();
  };

  /// All arguments outlive the pipeline. `bodyMemory` is the budget of large bodies while they are read, in bytes;
  /// `answerMemory` is the budget of large answers until they are sent, in bytes.
  RequestPipeline(const Router& router, ApiKeys& keys, const EndpointRegistry& endpoints, RateLimitGate& rates,
                  BodyMemory& bodyMemory, BodyMemory& answerMemory, const CorsPolicy& cors, LaterSubmissions& later,
                  Log& log)
      : router_(router),
        keys_(keys),
        endpoints_(endpoints),
        rates_(rates),
        bodyMemory_(bodyMemory),
        answerMemory_(answerMemory),
        cors_(cors),
        later_(later),
        log_(log) {}

  /// Runs the stages that need only the head: checkHead(). Returns null if a stage would have to block.
  RequestHandler* createRequestHandler(const Poco::Net::HTTPServerRequest& request) override;

  /// Returns true if jobs are submitted without blocking.
  bool makesQuickly() const noexcept override;
  /// Wakes the dispatcher for the jobs of the turn, once.
  void endTurn() noexcept override;

  /// Returns `{"error":…}`, the shape of an answer without a path.
  std::string errorBody(std::string_view sentence) const override;

  /// Runs the stages of kStages on the head. Returns the context, with a refusal if a stage refused the request.
  RequestContext checkHead(const Head& request);

  /// Reads the body, runs the route, and sends the answer. Answers the refusal of `context` instead if there is one.
  /// Called again with the same arguments after a wait (RequestHandler).
  RequestHandler::Progress serve(RequestContext& context, Exchange exchange) noexcept;

 private:
  using Stage = void (RequestPipeline::*)(const Head&, RequestContext&);
  struct NamedStage {
    Stage stage;
    const char* reason;
  };
  static const NamedStage kStages[];

  void parseTarget(const Head& head, RequestContext& context);
  void findRoute(const Head& head, RequestContext& context);
  std::optional<ApiResponse> answerPreflight(const Head& head, const std::string& allow) const;
  void authenticate(const Head& head, RequestContext& context);
  void checkAgain(const Head& head, RequestContext& context);
  bool isRevoked(const Head& head, RequestContext& context);
  void findEndpoint(const Head& head, RequestContext& context);
  void limitRate(const Head& head, RequestContext& context);
  void checkBody(const Head& head, RequestContext& context);

  RequestHandler::Progress sendParts(RequestContext& context, Exchange& exchange);
  std::optional<ApiResponse> respond(RequestContext& context, Exchange& exchange);
  std::optional<ApiResponse> runRoute(RequestContext& context);
  static RouteResult enterRoute(RequestContext& context);
  ApiResponse ownFault(const ApiRequest& apiRequest, const std::string& what,
                       const std::string& told = "the server failed");

  const Router& router_;
  ApiKeys& keys_;
  const EndpointRegistry& endpoints_;
  RateLimitGate& rates_;
  BodyMemory& bodyMemory_;
  BodyMemory& answerMemory_;
  const CorsPolicy& cors_;
  LaterSubmissions& later_;
  Log& log_;
};

}  // namespace jobq
