#include "clients.h"

#include <cstdio>
#include <cstdlib>

#include "jobq/json.h"
#include "jobq/transitions.h"
#include "testkit/wait_for.h"

namespace jobq::fault {
namespace {

struct Fields {
  explicit Fields(const std::string& body) : read(json::read(body)) {}

  std::string text(std::string_view key) const {
    const auto value = find(key);
    return value ? json::toText(*value).value_or("") : "";
  }
  std::string raw(std::string_view key) const {
    const auto value = find(key);
    return value ? std::string(value->raw) : "";
  }
  std::uint32_t number(std::string_view key) const {
    const auto value = find(key);
    return value ? static_cast<std::uint32_t>(json::toInteger(*value).value_or(0)) : 0;
  }

 private:
  std::optional<json::Value> find(std::string_view key) const {
    const auto* document = std::get_if<json::Document>(&read);
    return document == nullptr ? std::nullopt : document->find(key);
  }
  std::variant<json::Document, json::Fault> read;
};

std::optional<JobState> stateOf(const std::string& name) {
  for (const JobState state : {JobState::inQueue, JobState::inProgress, JobState::completed, JobState::failed,
                               JobState::cancelled, JobState::timedOut}) {
    if (jobq::nameOf(state) == name) return state;
  }
  return std::nullopt;
}

std::string bodyOf(const Plan& plan) {
  std::string body = "{\"input\":{\"number\":" + std::to_string(plan.number) +
                     ",\"workMs\":" + std::to_string(plan.workMs) + ",\"failBelow\":" + std::to_string(plan.failBelow);
  if (plan.chunks > 0) body += ",\"chunks\":" + std::to_string(plan.chunks);
  body += "}";
  if (plan.webhook) body += ",\"webhook\":\"" + std::string(kWebhook) + "\"";
  return body + "}";
}

std::string keyOf(const Plan& plan) {
  return plan.keyed ? "Idempotency-Key: number-" + std::to_string(plan.number) : "";
}

/// Returns the chunks of a /stream; empty if the body is no array of the witness's chunks.
std::optional<std::vector<Piece>> piecesIn(const std::string& body) {
  std::vector<Piece> pieces;
  if (body == "[]") return pieces;
  for (std::size_t at = 0; at < body.size();) {
    if (body[at] != (at == 0 ? '[' : ',')) return std::nullopt;
    unsigned long long number = 0;
    Piece piece;
    int length = 0;
    std::sscanf(body.c_str() + at + 1, "{\"output\":{\"number\":%llu,\"attempt\":%u,\"place\":%u}}%n", &number,
                &piece.attempt, &piece.place, &length);
    if (length == 0) return std::nullopt;
    piece.number = number;
    pieces.push_back(piece);
    at += 1 + static_cast<std::size_t>(length);
    if (body[at] == ']' && at + 1 == body.size()) return pieces;
  }
  return std::nullopt;
}

std::string path(const Target& target, const std::string& operation) {
  return "/v2/" + target.endpoint + "/" + operation + "/" + target.id;
}

}  // namespace

Client::Client(const Life& life, ClientRole role, std::uint64_t seed)
    : life_(life), role_(role), random_(seed), http_(life.address, life.key) {}

void Client::work() {
  while (!life_.board.closed() && step()) {
  }
}

bool Client::step() {
  if (const auto plan = life_.board.extractUnanswered()) {
    const bool goesOn = submitAgain(*plan);
    life_.board.done();
    return goesOn;
  }
  const bool crowded = life_.board.waiting() > life_.mostWaiting;
  switch (role_) {
    case ClientRole::ask: return askNext(true);
    case ClientRole::run: return crowded ? askNext(true) : submit(newPlan(false), false);
    case ClientRole::runsync: return crowded ? askNext(true) : submit(newPlan(true), false);
    case ClientRole::cancel: return crowded ? askNext(true) : submit(newPlan(false), chance(0.3));
    case ClientRole::purge:
      if (chance(0.02)) return purge();
      return crowded ? askNext(true) : submit(fleetingPlan(), false);
    case ClientRole::stream: {
      const auto streaming = life_.board.extractStreaming();
      return streaming ? stream(*streaming) : askNext(true);
    }
    case ClientRole::retry: break;
  }
  const auto failed = life_.board.extractFailed();
  if (failed && chance(0.8)) return retry(*failed);
  return askNext(true);
}

Plan Client::newPlan(bool sync) {
  Plan plan{life_.nextNumber.fetch_add(1), "fast", 0, 0, sync};
  const double kind = std::uniform_real_distribution<>(0, 1)(random_);
  if (kind < 0.95) {
    plan.workMs = chance(0.5) ? 0 : upTo(3);
  } else if (kind < 0.975) {
    plan.endpoint = "slow";
    plan.workMs = 5 + upTo(95);
  } else if (kind < 0.978) {
    plan.endpoint = "brittle";  // longer than many lives
    plan.workMs = 20 + upTo(300);
  } else {
    plan.failBelow = 2 + upTo(3);
  }
  plan.keyed = chance(0.2);
  plan.webhook = chance(0.04);
  if (chance(0.03)) plan.chunks = 1 + upTo(5);
  return plan;
}

Plan Client::fleetingPlan() {
  Plan plan{life_.nextNumber.fetch_add(1), kFleeting, 2 + upTo(18), 0, false};
  plan.webhook = chance(0.1);
  return plan;
}

bool Client::submit(Plan plan, bool andCancel) {
  const std::string operation = plan.sync ? "runsync" : "run";
  const HttpResponse response = http_.call("POST", "/v2/" + plan.endpoint + "/" + operation, bodyOf(plan), keyOf(plan));
  if (response.fate == HttpResponse::Fate::unsent) return false;
  const bool usable = isUsable(response, operation, {200});
  const std::string id = usable ? Fields(response.body).text("id") : "";
  log_.push_back(Submission{plan, response.span, id});
  if (!usable) return false;
  life_.board.countAcknowledged();
  const Target target{plan.number, plan.endpoint, id, false};
  if (plan.chunks > 0) life_.board.addStreaming(target);
  if (plan.sync) {
    const auto state = note(plan.number, response, true);
    if (state == JobState::failed) life_.board.addFailed(target);
    if (state && terminal(*state)) return true;
  }
  if (andCancel && !cancel(target)) return false;
  life_.board.add(target);
  return !plan.keyed || !chance(0.1) || submitAgain(plan);
}

bool Client::submitAgain(const Plan& plan) {
  const std::string operation = plan.sync ? "runsync" : "run";
  const HttpResponse response = http_.call("POST", "/v2/" + plan.endpoint + "/" + operation, bodyOf(plan), keyOf(plan));
  if (response.fate == HttpResponse::Fate::unsent) return false;
  if (!isUsable(response, operation, {200})) return false;
  const std::string id = Fields(response.body).text("id");
  log_.push_back(Submission{plan, response.span, id});
  if (plan.sync) (void)note(plan.number, response, true);
  life_.board.add({plan.number, plan.endpoint, id, false});
  return true;
}

bool Client::askNext(bool waitForOne) {
  auto target = waitForOne ? life_.board.next() : life_.board.nextNow();
  if (!target) return !life_.board.closed();
  const bool goesOn = ask(std::move(*target));
  life_.board.done();
  return goesOn;
}

bool Client::ask(Target target) {
  // The second question about a job without an end waits for the end, to avoid asking over and over.
  const bool wait = target.asked;
  if (!wait && target.endpoint == kFleeting && chance(0.02)) return setTtl(target);
  const HttpResponse response =
      http_.call("GET", path(target, wait ? "status-sync" : "status") + (wait ? "?wait=1000" : ""));
  if (!isUsable(response, "status", {200, 404})) return false;
  if (response.status == 404) {
    log_.push_back(Missed{target.number, {response.span, life_.number}});
    return true;
  }
  const auto state = note(target.number, response, true);
  if (state == JobState::failed) life_.board.addFailed(target);
  if (state && terminal(*state)) {
    if (!chance(0.02)) return true;  // a few are asked about again at once
  } else {
    target.asked = true;
  }
  life_.board.add(std::move(target));
  return true;
}

bool Client::cancel(const Target& target) {
  const HttpResponse response = http_.call("POST", path(target, "cancel"));
  if (response.fate == HttpResponse::Fate::unsent) return false;
  const bool usable = isUsable(response, "cancel", {200, 404});
  Order order{Order::Command::cancel, Order::Effect::unknown, response.span, life_.number};
  if (usable && response.status == 404) log_.push_back(Missed{target.number, {response.span, life_.number}});
  if (usable && response.status == 200) {
    const auto state = note(target.number, response, false);
    order.effect = state == JobState::cancelled ? Order::Effect::done : Order::Effect::refused;
  }
  log_.push_back(Ordered{target.number, order});
  return usable;
}

bool Client::retry(const Target& target) {
  const HttpResponse response = http_.call("POST", path(target, "retry"));
  if (response.fate == HttpResponse::Fate::unsent) return false;
  const bool usable = isUsable(response, "retry", {200, 400, 404});
  Order order{Order::Command::retry, Order::Effect::unknown, response.span, life_.number};
  if (usable) order.effect = response.status == 200 ? Order::Effect::done : Order::Effect::refused;
  if (usable && response.status == 404) log_.push_back(Missed{target.number, {response.span, life_.number}});
  log_.push_back(Ordered{target.number, order});
  if (order.effect == Order::Effect::done) life_.board.add({target.number, target.endpoint, target.id, false});
  return usable;
}

bool Client::setTtl(const Target& target) {
  constexpr int kTtlMs = 1'500;
  const HttpResponse response = http_.call("GET", path(target, "status") + "?ttl=" + std::to_string(kTtlMs));
  if (response.fate == HttpResponse::Fate::unsent) return false;
  const bool usable = isUsable(response, "status?ttl", {200, 404});
  Order order{Order::Command::ttl, Order::Effect::unknown, response.span, life_.number, kTtlMs * 1'000'000LL};
  if (usable) order.effect = response.status == 200 ? Order::Effect::done : Order::Effect::refused;
  log_.push_back(Ordered{target.number, order});
  if (usable && response.status == 404) log_.push_back(Missed{target.number, {response.span, life_.number}});
  if (order.effect == Order::Effect::done) {
    (void)note(target.number, response, true);
    life_.board.add(target);
  }
  return usable;
}

bool Client::purge() {
  const HttpResponse response = http_.call("POST", "/v2/" + std::string(kFleeting) + "/purge-queue");
  if (response.fate == HttpResponse::Fate::unsent) return false;
  const bool usable = isUsable(response, "purge-queue", {200});
  log_.push_back(Purged{
      {Order::Command::purge, usable ? Order::Effect::done : Order::Effect::unknown, response.span, life_.number}});
  return usable;
}

// Reads the stream to the end of its job, and then the whole stream once more.
bool Client::stream(const Target& target) {
  for (;;) {
    const auto page = readPage(target, true);
    if (!page) return trouble_.empty() && !life_.board.closed();
    if (!page->read) return false;
    if (!terminal(page->state)) continue;
    const auto all = readPage(target, false);
    return all ? all->read : trouble_.empty();
  }
}

std::optional<Page> Client::readPage(const Target& target, bool consumes) {
  const HttpResponse response =
      http_.call("GET", path(target, "stream") + (consumes ? "?wait=1000" : "?wait=1000&offset=0"));
  if (response.fate == HttpResponse::Fate::unsent)
    return Page{.span = response.span, .life = life_.number, .read = false};
  Page page{.span = response.span, .life = life_.number, .read = false, .consumes = consumes};
  const bool usable = isUsable(response, "stream", {200, 404});
  if (usable && response.status == 404) {
    log_.push_back(Missed{target.number, {response.span, life_.number}});
    return std::nullopt;
  }
  const auto state = stateOf(response.header("X-Job-Status"));
  auto pieces = piecesIn(response.body);
  if (usable && (!state || !pieces)) trouble_ = "/stream answered " + response.head + response.body;
  if (usable && state && pieces) {
    page.read = true;
    page.state = *state;
    page.attempt = static_cast<std::uint32_t>(std::atoi(response.header("X-Job-Attempt").c_str()));
    page.pieces = std::move(*pieces);
    log_.push_back(Seen{target.number, {response.span, life_.number, *state, false, 0, "", ""}});
  }
  log_.push_back(Streamed{target.number, page});
  return page;
}

bool Client::isUsable(const HttpResponse& response, const std::string& request, std::initializer_list<int> expected) {
  if (response.fate == HttpResponse::Fate::answered) {
    for (const int status : expected) {
      if (response.status == status) return true;
    }
    trouble_ = "/" + request + " answered " + std::to_string(response.status) + ": " + response.body;
  }
  if (response.fate == HttpResponse::Fate::late) trouble_ = "/" + request + " was not answered, and its server lived";
  if (response.fate == HttpResponse::Fate::broken) trouble_ = "/" + request + " was answered with " + response.body;
  return false;
}

std::optional<JobState> Client::note(std::uint64_t number, const HttpResponse& response, bool whole) {
  const Fields fields(response.body);
  const auto state = stateOf(fields.text("status"));
  if (!state) {
    trouble_ = "an answer has no state: " + response.body;
    return std::nullopt;
  }
  log_.push_back(Seen{number,
                      {response.span, life_.number, *state, whole, fields.number("retries"), fields.raw("output"),
                       fields.text("error")}});
  return state;
}

ClientPool::ClientPool(const Life& life, const std::vector<ClientRole>& roles, std::uint64_t seed) : life_(life) {
  for (const ClientRole role : roles) clients_.push_back(std::make_unique<Client>(life_, role, ++seed));
  for (const auto& client : clients_) threads_.emplace_back([&client] { client->work(); });
}

ClientPool::~ClientPool() {
  life_.board.close();
  testkit::joinAll("the clients", threads_);
}

std::vector<std::string> ClientPool::reportTo(History& history) {
  life_.board.close();
  testkit::joinAll("the clients", threads_);
  threads_.clear();
  std::vector<std::string> troubles;
  for (const auto& client : clients_) {
    // Submissions first: a client may have asked about the job of another client.
    for (Entry& entry : client->log()) {
      if (auto* sent = std::get_if<Submission>(&entry)) history.sent(sent->plan, sent->span, sent->id);
    }
    if (!client->trouble().empty()) troubles.push_back(client->trouble());
  }
  for (const auto& client : clients_) {
    for (Entry& entry : client->log()) {
      if (auto* seen = std::get_if<Seen>(&entry)) history.saw(seen->number, std::move(seen->sight));
      if (auto* ordered = std::get_if<Ordered>(&entry)) history.ordered(ordered->number, ordered->order);
      if (auto* missed = std::get_if<Missed>(&entry)) history.missed(missed->number, missed->absence);
      if (auto* streamed = std::get_if<Streamed>(&entry)) history.streamed(streamed->number, std::move(streamed->page));
      if (auto* purged = std::get_if<Purged>(&entry)) history.purged(purged->order);
    }
  }
  return troubles;
}

}  // namespace jobq::fault
