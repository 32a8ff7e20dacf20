// The places of parked calls of remote workers that the pool has refused, because the endpoint may have no worker now.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "core/workers/remote/remote_pools.h"
#include "core/workers/remote/remote_worker.h"
#include "jobq/job.h"
#include "jobq/mutex.h"

namespace jobq {

/// Any thread, unless a function says otherwise. The mutex of RemoteRegistry is not held in a call. The functions throw
/// std::bad_alloc only.
class RemoteOffers {
 public:
  /// `pools` outlives the object.
  explicit RemoteOffers(RemotePools& pools) : pools_(pools) {}

  /// Adds the places of a parked call to the pool of the endpoint. Refused places are offered again by offerAgain(),
  /// until the call ends.
  void offer(const EndpointId& endpoint, const std::shared_ptr<RemoteTake>& take, std::vector<WorkerId> places);
  /// Offers the refused places again, because the endpoint of a parked call may have workers again. Called each second,
  /// by a single thread at a time.
  void offerAgain();

 private:
  struct Refused {
    EndpointId endpoint;
    std::weak_ptr<RemoteTake> take;
  };

  bool addToPool(const EndpointId& endpoint, const RemoteTake& take, const std::vector<WorkerId>& places);

  RemotePools& pools_;
  Mutex mutex_;
  std::vector<Refused> refused_ JOBQ_GUARDED_BY(mutex_);  // places of parked calls, and of some ended calls
  std::size_t looksAt_ JOBQ_GUARDED_BY(mutex_) = 0;       // size at which the ended calls are removed
};

}  // namespace jobq
