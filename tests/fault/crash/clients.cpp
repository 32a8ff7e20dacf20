#include "clients.h"

#include "jobq/json.h"
#include "jobq/transitions.h"

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
  return "{\"input\":{\"number\":" + std::to_string(plan.number) + ",\"workMs\":" + std::to_string(plan.workMs) +
         ",\"failBelow\":" + std::to_string(plan.failBelow) + "}}";
}

std::string path(const Target& target, const std::string& verb) {
  return "/v2/" + target.endpoint + "/" + verb + "/" + target.id;
}

}  // namespace

Client::Client(const Life& life, Duty duty, std::uint64_t seed)
    : life_(life), duty_(duty), random_(seed), http_(life.address, life.key) {}

void Client::work() {
  while (!life_.board.closed() && step()) {
  }
}

bool Client::step() {
  const bool crowded = life_.board.waiting() > life_.mostWaiting;
  switch (duty_) {
    case Duty::ask: return askNext(true);
    case Duty::run: return crowded ? askNext(true) : submit(newPlan(false), false);
    case Duty::runsync: return crowded ? askNext(true) : submit(newPlan(true), false);
    case Duty::cancel: return crowded ? askNext(true) : submit(newPlan(false), chance(0.3));
    case Duty::retry: break;
  }
  const auto failed = life_.board.takeFailed();
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
    plan.endpoint = "brittle";  // longer than many a life
    plan.workMs = 20 + upTo(300);
  } else {
    plan.failBelow = 2 + upTo(3);
  }
  return plan;
}

bool Client::submit(Plan plan, bool andCancel) {
  const std::string verb = plan.sync ? "runsync" : "run";
  const Reply reply = http_.call("POST", "/v2/" + plan.endpoint + "/" + verb, bodyOf(plan));
  if (reply.fate == Reply::Fate::unsent) return false;
  const bool usable = isUsable(reply, verb, {200});
  const std::string id = usable ? Fields(reply.body).text("id") : "";
  log_.push_back(Submission{plan, reply.span, id});
  if (!usable) return false;
  life_.board.countAcknowledged();
  const Target target{plan.number, plan.endpoint, id, false};
  if (plan.sync) {
    const auto state = note(plan.number, reply, true);
    if (state == JobState::failed) life_.board.addFailed(target);
    if (state && terminal(*state)) return true;
  }
  if (andCancel && !cancel(target)) return false;
  life_.board.add(target);
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
  // A job that has not ended is waited for the next time: it would only be asked about over and over.
  const bool wait = target.asked;
  const Reply reply = http_.call("GET", path(target, wait ? "status-sync" : "status") + (wait ? "?wait=1000" : ""));
  if (!isUsable(reply, "status", {200, 404})) return false;
  if (reply.status == 404) {
    log_.push_back(Missed{target.number, {reply.span, life_.number}});
    return true;
  }
  const auto state = note(target.number, reply, true);
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
  const Reply reply = http_.call("POST", path(target, "cancel"));
  if (reply.fate == Reply::Fate::unsent) return false;
  const bool usable = isUsable(reply, "cancel", {200, 404});
  Order order{Order::Verb::cancel, Order::Effect::unknown, reply.span, life_.number};
  if (usable && reply.status == 404) log_.push_back(Missed{target.number, {reply.span, life_.number}});
  if (usable && reply.status == 200) {
    const auto state = note(target.number, reply, false);
    order.effect = state == JobState::cancelled ? Order::Effect::done : Order::Effect::refused;
  }
  log_.push_back(Ordered{target.number, order});
  return usable;
}

bool Client::retry(const Target& target) {
  const Reply reply = http_.call("POST", path(target, "retry"));
  if (reply.fate == Reply::Fate::unsent) return false;
  const bool usable = isUsable(reply, "retry", {200, 400, 404});
  Order order{Order::Verb::retry, Order::Effect::unknown, reply.span, life_.number};
  if (usable) order.effect = reply.status == 200 ? Order::Effect::done : Order::Effect::refused;
  if (usable && reply.status == 404) log_.push_back(Missed{target.number, {reply.span, life_.number}});
  log_.push_back(Ordered{target.number, order});
  if (order.effect == Order::Effect::done) life_.board.add({target.number, target.endpoint, target.id, false});
  return usable;
}

bool Client::isUsable(const Reply& reply, const std::string& request, std::initializer_list<int> expected) {
  if (reply.fate == Reply::Fate::answered) {
    for (const int status : expected) {
      if (reply.status == status) return true;
    }
    trouble_ = "/" + request + " answered " + std::to_string(reply.status) + ": " + reply.body;
  }
  if (reply.fate == Reply::Fate::late) trouble_ = "/" + request + " was not answered, and its server lived";
  if (reply.fate == Reply::Fate::broken) trouble_ = "/" + request + " was answered with " + reply.body;
  return false;
}

std::optional<JobState> Client::note(std::uint64_t number, const Reply& reply, bool whole) {
  const Fields fields(reply.body);
  const auto state = stateOf(fields.text("status"));
  if (!state) {
    trouble_ = "an answer has no state: " + reply.body;
    return std::nullopt;
  }
  log_.push_back(Seen{
      number,
      {reply.span, life_.number, *state, whole, fields.number("retries"), fields.raw("output"), fields.text("error")}});
  return state;
}

Crew::Crew(const Life& life, const std::vector<Duty>& duties, std::uint64_t seed) : life_(life) {
  for (const Duty duty : duties) clients_.push_back(std::make_unique<Client>(life_, duty, ++seed));
  for (const auto& client : clients_) threads_.emplace_back([&client] { client->work(); });
}

Crew::~Crew() {
  life_.board.close();
  for (std::thread& thread : threads_) thread.join();
}

std::vector<std::string> Crew::tell(History& history) {
  life_.board.close();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  std::vector<std::string> troubles;
  for (const auto& client : clients_) {
    // Submissions first: one client may have asked about the job of another.
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
    }
  }
  return troubles;
}

}  // namespace jobq::fault
