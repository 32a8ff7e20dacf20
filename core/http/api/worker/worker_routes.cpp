// Table of the calls of remote workers, on both mounts (core/http/API.md, "Remote workers").
#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "core/http/api/worker/worker_calls.h"
#include "core/http/api/worker/worker_report.h"

namespace jobq {
namespace {

using WorkerAnswer = RouteResult (*)(const WorkerDeps&, ApiRequest&);
using WorkerRefusal = RouteResult (*)(const WorkerDeps&, ApiRequest&, ApiResponse);
constexpr std::size_t kNoBody = 1UL << 20;  // bytes of bodies that nobody reads
struct WorkerRow {
  const char* method;
  const char* path;
  WorkerAnswer answer;
  WorkerRefusal refused;
  std::size_t bodyLimit = kNoBody;
  bool hasHead = true;
};

class RefusedWorkerCall final : public RefusalChange {
 public:
  RefusedWorkerCall(const WorkerDeps& deps, WorkerRefusal refused) : deps_(deps), refused_(refused) {}
  RouteResult answer(ApiRequest& request, ApiResponse refusal) const override {
    return refused_(deps_, request, std::move(refusal));
  }

 private:
  const WorkerDeps deps_;
  const WorkerRefusal refused_;
};

constexpr WorkerRow kWorkerRows[] = {
    {"GET", "/job-take/{worker}", awaitJob, refuseLate, kNoBody, false},
    {"GET", "/job-take-batch/{worker}", awaitJobs, refuseLate, kNoBody, false},
    {"GET", "/job-stop/{worker}", awaitStops, refuseLate},
    {"GET", "/ping/{worker}", ping, refusedPing},
    {"POST", "/job-done/{worker}/{job}", reportResult, refusedResult, kMaxReport},
    {"POST", "/job-done-batch/{worker}", reportResults, refusedResults, kMaxReport},
    {"POST", "/job-stream/{worker}/{job}", reportChunk, refusedChunk, kMaxReport},
};

}  // namespace

void addWorkerRoutes(Router& router, const WorkerDeps& deps) {
  for (const char* mount : {"/v2/{endpoint}", "/sdk/v2/{endpoint}"}) {
    for (const WorkerRow& row : kWorkerRows) {
      Route route{.methods = {row.method}, .pattern = std::string(mount) + row.path, .scope = Scope::worker};
      route.bodyLimit = row.bodyLimit;
      route.run = [deps, answer = row.answer](ApiRequest& request) { return answer(deps, request); };
      route.refusals = std::make_shared<RefusedWorkerCall>(deps, row.refused);
      route.hasHead = row.hasHead;
      router.add(std::move(route));
    }
  }
  router.changeRefusals({"job-take", "job-take-batch", "job-stop"},
                        std::make_shared<RefusedWorkerCall>(deps, refusePathLate));
}

}  // namespace jobq
