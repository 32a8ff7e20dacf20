#include "faulty_storage.h"

#include <utility>

namespace jobq::fault {

namespace {

/// A call of the storage under way until the end of the object's life.
class CallUnderWay {
 public:
  explicit CallUnderWay(FaultPlan& plan) : plan_(plan) { plan_.countCall(1); }
  ~CallUnderWay() { plan_.countCall(-1); }
  CallUnderWay(const CallUnderWay&) = delete;
  CallUnderWay& operator=(const CallUnderWay&) = delete;

 private:
  FaultPlan& plan_;
};

}  // namespace

void FaultyStorage::around(const char* operation, const std::function<bool()>& call) {
  plan_.enter(operation);
  const CallUnderWay underWay(plan_);
  if (call()) plan_.leave(operation);
}

}  // namespace jobq::fault
