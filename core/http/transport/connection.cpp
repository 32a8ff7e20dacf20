#include "core/http/transport/connection.h"

#include <exception>
#include <utility>

#include "core/base/connection_owner.h"
#include "core/base/words.h"
#include "core/http/transport/message.h"
#include "core/http/transport/request_handler.h"

namespace jobq {
namespace {

/// Longest stay of a thread with a request that waits briefly. A suspension costs two thread switches and a system
/// call.
constexpr std::chrono::milliseconds kStay{20};

std::string noHeadMemory(const Budget& heads) {
  return limitReached("too many bytes of heads over 8 KB are being received", heads.whole(), "fixed") +
         "; send a shorter head, or try again in a moment";
}

}  // namespace

/// A request from its head to the end of its answer, with the memory that both need.
struct Connection::OpenRequest {
  OpenRequest(Connection& connection, const RequestHead& head, Budget::Reservation copiedHead)
      : copies(std::move(copiedHead)),
        reader{*connection.stream_, connection.place_.address()},
        response(reader, connection.server_.readers, head.method == "HEAD", head.http10, connection.server_.closing),
        request({*connection.stream_,
                 connection.buffer_,
                 connection.server_.waiting,
                 connection.server_.places,
                 {&connection.server_.resumer, connection.id_},
                 connection.ownership_.owner(),
                 connection.server_.threadsBusy,
                 connection.mayBlock_,
                 reader,
                 connection.server_.params},
                head, response) {}

  /// Leaves the handler null if the judgement would have to block.
  void judgeHead(Connection& connection) {
    handler.reset(connection.server_.handlers.createRequestHandler(request));
    connection.wasQuick_ = handler != nullptr && handler->isQuick();
  }

  RequestHandler::Progress proceed() {
    handler->handleRequest(request, response);
    return request.notedProgress();
  }

  const Budget::Reservation copies;
  AnswerReader reader;
  ServerResponse response;
  ServerRequest request;
  std::unique_ptr<RequestHandler> handler;
  bool isAnswered = false;  // nothing but the rest of the answer is left
};

Connection::Connection(std::uint64_t id, std::unique_ptr<ByteStream> stream, const Server& server,
                       AddressPlaces::Place place)
    : place_(std::move(place)),
      id_(id),
      stream_(std::move(stream)),
      server_(server),
      buffer_(server.heads),
      ownership_(server.time) {}

Connection::~Connection() = default;

bool Connection::isNeeded() const noexcept { return ownership_.owner() && ownership_.owner()->needsConnection(); }

Connection::Ready Connection::receive() {
  while (head_ == HeadScanner::State::incomplete) {
    const auto got = buffer_.fill(*stream_, ByteStream::Wait::no);
    if (!got) return Ready::no;
    if (buffer_.full()) return Ready::yes;
    // A head cut off by the end of the connection gets no answer.
    if (*got == 0) {
      ownership_.noteClosed(*stream_, buffer_.empty());
      return Ready::gone;
    }
    head_ = scanner_.scan(buffer_.view());
  }
  return isProbe(buffer_.view()) ? Ready::probe : Ready::yes;
}

// Returns false if there is no head to serve now.
bool Connection::awaitHead() {
  // Bytes behind the last request may hold a head.
  if (buffer_.full()) return true;
  if (head_ == HeadScanner::State::incomplete && !buffer_.empty()) head_ = scanner_.scan(buffer_.view());
  while (head_ == HeadScanner::State::incomplete) {
    // The reactor waits for the rest of a head; a thread waits only for the first byte of the next head.
    const bool isOfReactor = wasQuick_ && !stream_->secure() && server_.crowd.isLarge();
    const bool leaves = server_.threadsBusy || isOfReactor;
    const bool wait = buffer_.empty() && !leaves && !server_.closing;
    const auto got = buffer_.fill(*stream_, wait ? ByteStream::Wait::linger : ByteStream::Wait::no);
    if (buffer_.full()) return true;
    gone_ = got && *got == 0;
    if (gone_) ownership_.noteClosed(*stream_, buffer_.empty());
    if (!got || gone_) return false;
    head_ = scanner_.scan(buffer_.view());
  }
  return true;
}

Connection::Next Connection::serve() {
  if (stream_->handshaking()) {
    const Ready ready = receive();
    if (ready == Ready::no) return Next::resume;
    if (ready == Ready::gone) return Next::close;
  }
  while (open_ != nullptr || awaitHead()) {
    mayBlock_ = true;
    if (open_ == nullptr) {
      if (const auto refused = openRequest()) return *refused;
    }
    const Next next = continueRequest(Thread::pool);
    if (next != Next::park) return next;
  }
  return gone_ ? Next::close : Next::park;
}

Connection::Next Connection::serveQuickly() {
  mayBlock_ = false;
  if (open_ == nullptr) {
    if (const auto refused = openRequest()) return *refused;
    if (!wasQuick_) return Next::needsThread;
  }
  const Next next = continueRequest(Thread::reactor);
  // A client that sends several requests at once must not hold the reactor thread.
  return next == Next::park && !buffer_.empty() ? Next::needsThread : next;
}

// Judges the head that has come. Returns the next step behind a refusal, or no value if the request is open.
std::optional<Connection::Next> Connection::openRequest() {
  if (buffer_.full()) return refuse(503, noHeadMemory(server_.heads));
  const auto head = parseHead(
      buffer_.view().substr(0, head_ == HeadScanner::State::complete ? scanner_.size() : std::string_view::npos));
  if (!head) return refuse(head.failure().status, head.failure().sentence);
  // Two copies of the head at most: the fields in the request, the target in the call.
  Budget::Reservation copies;
  if (scanner_.size() > ReadBuffer::kFree && !copies.grow(server_.heads, 2 * scanner_.size())) {
    return refuse(503, noHeadMemory(server_.heads));
  }
  open_ = std::make_unique<OpenRequest>(*this, *head, std::move(copies));
  if (!head->keepAlive) open_->response.closeAfter();
  // The views of the head end here; the request has copies.
  buffer_.consume(scanner_.size());
  buffer_.shrink();
  open_->judgeHead(*this);
  return std::nullopt;
}

void Connection::continueBorrowed() noexcept {
  bool wakes = true;
  try {
    const auto next = continueSuspended();
    afterLoan_ = next.value_or(Next::park);
    wakes = next != Next::park;
  } catch (...) {
    loanFault_ = std::current_exception();
  }
  stay_.endLoan(wakes);
}

std::optional<Connection::Next> Connection::continueSuspended() {
  const Next next = continueRequest(Thread::outside);
  // Bytes of a further request may have left the socket: into the buffer, or into the TLS stream.
  const bool mayHoldRequest = !buffer_.empty() || stream_->secure();
  return next == Next::park && mayHoldRequest ? std::nullopt : std::optional(next);
}

// Returns the next step behind the present request, or the reason to wait with it. A thread that does not stay suspends
// a request that waits.
Connection::Next Connection::continueRequest(Thread thread) {
  mayBlock_ = thread != Thread::reactor;
  if (open_->handler == nullptr) open_->judgeHead(*this);
  if (open_->response.hasRest()) open_->response.sendRest();
  if (open_->response.hasRest()) return Next::awaitOutput;
  if (!open_->isAnswered) {
    if (!open_->response.delivered()) open_->request.client().noteLeft();
    auto progress = open_->proceed();
    while (progress == RequestHandler::Progress::waitsBriefly && thread == Thread::pool) {
      const auto next = stay();
      if (next == Next::suspend) break;
      if (next) return *next;
      progress = open_->proceed();
    }
    switch (progress) {
      case RequestHandler::Progress::waitsBriefly:
      case RequestHandler::Progress::waitsForResume: open_->request.client().noteSuspended(); return Next::suspend;
      case RequestHandler::Progress::waitsForStorage: return Next::suspendUnwatched;
      case RequestHandler::Progress::waitsForInput: return Next::awaitInput;
      case RequestHandler::Progress::waitsForOutput: return Next::awaitOutput;
      case RequestHandler::Progress::answered: open_->isAnswered = true; open_->request.client().endWatch();
    }
  }
  if (open_->response.hasRest()) return Next::awaitOutput;
  const std::unique_ptr<OpenRequest> ended = std::move(open_);
  scanner_.restart();
  head_ = HeadScanner::State::incomplete;
  ended->response.finish();
  const bool isCut = !ended->request.bodyResult() && stream_->peerHasClosed();
  if (isCut || !ended->response.delivered()) ownership_.noteTorn();
  if (!ended->response.sent() || !ended->response.delivered()) return Next::close;
  ownership_.noteAnswer();
  return ended->response.closes() || !ended->request.isBodyConsumed() ? afterLast() : Next::park;
}

// Waits for the event of the open request. Returns no value when the event has come, `suspend` if the wait goes on
// without a thread, and otherwise the next step behind the answer of the thread that has borrowed the connection.
std::optional<Connection::Next> Connection::stay() {
  if (server_.threadsBusy || server_.closing) return Next::suspend;
  const auto end = std::chrono::steady_clock::now() + kStay;
  while (server_.places.beginStay(*this)) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    const bool isWoken = ThreadStay::await(stream_->descriptor(), left);
    if (stay_.end()) {
      if (loanFault_) std::rethrow_exception(std::exchange(loanFault_, nullptr));
      return afterLoan_;
    }
    // The next request, the end of the client, or the end of the time.
    if (!isWoken) return Next::suspend;
  }
  return std::nullopt;
}

void Connection::noteClientLeft() noexcept {
  open_->request.client().noteLeft();
  ownership_.noteTorn();
}

std::chrono::milliseconds Connection::timeLeft() const noexcept {
  return open_->response.hasRest() ? open_->response.sendTimeLeft() : open_->request.inputTimeLeft();
}

// A close with unread input would send a reset, and a client that still sends would lose the answer.
Connection::Next Connection::afterLast() {
  stream_->endSending();
  buffer_.clear();
  return Next::discardInput;
}

Connection::Next Connection::refuse(int status, std::string_view sentence) {
  const AnswerReader reader{*stream_, place_.address()};
  ServerResponse response(reader, server_.readers, false, false, server_.closing);
  response.closeAfter();
  response.setStatusAndReason(static_cast<Poco::Net::HTTPResponse::HTTPStatus>(status));
  response.setContentType("application/json");
  if (status == Poco::Net::HTTPResponse::HTTP_SERVICE_UNAVAILABLE) response.set("Retry-After", "1");
  response.sendAtOnce(server_.handlers.errorBody(sentence));
  return response.delivered() ? afterLast() : Next::close;
}

Connection::Next Connection::refuseLateHead() {
  if (stream_->handshaking()) return Next::close;
  return refuse(408, "the request's head did not come in time: send it within 10 seconds");
}

}  // namespace jobq
