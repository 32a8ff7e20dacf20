// Results of JobStore::insertLater() for tests: receivers with a note of each call, and waits for the calls.
//
//     LaterInserts inserts;
//     storage.jobs().insertLater(job, policy, std::nullopt, inserts.addReceiver());
//     EXPECT_EQ(inserts.awaitAll(), std::vector<std::string>{"inserted"});
#pragma once

#include <cstddef>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "jobq/error.h"
#include "jobq/job_store.h"
#include "jobq/mutex.h"
#include "jobq/storage.h"
#include "testkit/wait_for.h"

namespace jobq::testkit {

/// Makes receivers and keeps the calls of each receiver as a text: "inserted", "duplicate of " with the id of
/// the first job, "key conflict", "StorageError" or "another error"; the texts of several calls are joined by " and ",
/// and a receiver without a call has an empty text. The receivers are numbered from 0 in the order of addReceiver().
/// A receiver may outlive the object. Any thread.
class LaterInserts {
 public:
  std::unique_ptr<InsertReceiver> addReceiver() {
    const Lock lock(notes_->mutex);
    notes_->calls.emplace_back();
    return std::make_unique<Receiver>(notes_, notes_->calls.size() - 1);
  }

  /// Waits for the first call of a receiver. Returns the text of the receiver. Throws WaitExpired.
  std::string awaitCall(std::size_t receiver) {
    const Lock lock(notes_->mutex);
    for (WaitDeadline wait("the result of a later insert"); notes_->calls.at(receiver).empty();) {
      wait.on(notes_->changed, notes_->mutex);
    }
    return notes_->calls[receiver];
  }

  /// Waits until every receiver is destroyed. Returns the text of each receiver. Throws WaitExpired.
  std::vector<std::string> awaitAll() {
    const Lock lock(notes_->mutex);
    for (WaitDeadline wait("the end of the later inserts"); notes_->destroyed < notes_->calls.size();) {
      wait.on(notes_->changed, notes_->mutex);
    }
    return notes_->calls;
  }

  /// Returns the text of each receiver at present.
  std::vector<std::string> calls() const {
    const Lock lock(notes_->mutex);
    return notes_->calls;
  }
  /// Returns the number of destroyed receivers.
  std::size_t destroyed() const {
    const Lock lock(notes_->mutex);
    return notes_->destroyed;
  }

 private:
  /// Shared with the receivers.
  struct Notes {
    Mutex mutex;
    Condition changed;
    std::vector<std::string> calls JOBQ_GUARDED_BY(mutex);
    std::size_t destroyed JOBQ_GUARDED_BY(mutex) = 0;
  };

  class Receiver final : public InsertReceiver {
   public:
    Receiver(std::shared_ptr<Notes> notes, std::size_t number) : notes_(std::move(notes)), number_(number) {}
    ~Receiver() override {
      const Lock lock(notes_->mutex);
      ++notes_->destroyed;
      notes_->changed.notifyAll();
    }
    Receiver(const Receiver&) = delete;
    Receiver& operator=(const Receiver&) = delete;

    void inserted(InsertResult result) noexcept override {
      if (const auto* duplicate = std::get_if<Duplicate>(&result)) {
        note("duplicate of " + duplicate->id);
      } else {
        note(std::holds_alternative<Inserted>(result) ? "inserted" : "key conflict");
      }
    }
    void failed(std::exception_ptr error) noexcept override {
      try {
        std::rethrow_exception(std::move(error));
      } catch (const StorageError&) {
        note("StorageError");
      } catch (...) {
        note("another error");
      }
    }

   private:
    void note(const std::string& call) {
      const Lock lock(notes_->mutex);
      std::string& text = notes_->calls[number_];
      text += (text.empty() ? "" : " and ") + call;
      notes_->changed.notifyAll();
    }

    const std::shared_ptr<Notes> notes_;
    const std::size_t number_;
  };

  const std::shared_ptr<Notes> notes_ = std::make_shared<Notes>();
};

}  // namespace jobq::testkit
