// A queue that serves its claimants in fair shares.
#ifndef WARPLINE_SERVER_SCHEDULE_FAIR_QUEUE_H_
#define WARPLINE_SERVER_SCHEDULE_FAIR_QUEUE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "server/base/owner.h"

namespace warpline {

// Accounts of the cost that each user has been served, in virtual time, by start-time fair queueing (P.
// Goyal, H. M. Vin, H. Cheng, "Start-time Fair Queueing", 1996). The next user is the waiting one that has
// been served least. A user that comes back after a pause starts at the present virtual time, so waiting
// earns no extra claim. Not thread-safe.
class FairAccounts {
 public:
  bool empty() const { return waiting_.empty(); }

  // The user waits from now on. Does nothing if it already waits.
  void Wait(std::uint64_t user) {
    Account& account = accounts_[user];
    if (std::exchange(account.waits, true)) return;
    account.served = std::max(account.served, now_);
    waiting_.push_back(user);
  }
  void StopWaiting(std::uint64_t user) {
    accounts_[user].waits = false;
    waiting_.erase(std::find(waiting_.begin(), waiting_.end(), user));
    ForgetTheIdle();
  }
  // A waiting user is served an item of this cost.
  void Serve(std::uint64_t user, double cost) {
    Account& account = accounts_[user];
    now_ = std::max(now_, account.served);
    account.served += cost;
  }
  // Corrects the user's charge once the real cost of its item is known.
  void Charge(std::uint64_t user, double difference) {
    const auto account = accounts_.find(user);
    if (account != accounts_.end()) account->second.served += difference;
  }
  // Returns how much more the user, which waits, has been served than the waiting user that was served least.
  // Unit: virtual time.
  double LeadOf(std::uint64_t user) const { return ServedOf(user) - ServedOf(Next()); }

  // Calls visit(user) for the waiting users, in fair order, until it returns true. Returns whether it did.
  template <typename Visit>
  bool VisitInOrder(const Visit& visit) const {
    if (waiting_.empty()) return false;
    // Usually the visit accepts the first user, and the order of the others is not needed.
    const std::uint64_t first = Next();
    if (visit(first)) return true;
    std::vector<std::pair<double, std::uint64_t>> others;
    for (const std::uint64_t user : waiting_) {
      if (user != first) others.emplace_back(ServedOf(user), user);
    }
    std::stable_sort(others.begin(), others.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    return std::any_of(others.begin(), others.end(), [&](const auto& other) { return visit(other.second); });
  }

 private:
  struct Account {
    double served = 0;
    bool waits = false;
  };
  double ServedOf(std::uint64_t user) const { return accounts_.at(user).served; }
  std::uint64_t Next() const {
    return *std::min_element(waiting_.begin(), waiting_.end(),
                             [this](std::uint64_t a, std::uint64_t b) { return ServedOf(a) < ServedOf(b); });
  }
  // Idle accounts that the virtual time has passed are no longer needed. They are removed each time the
  // number of accounts has doubled.
  void ForgetTheIdle() {
    if (accounts_.size() < forget_at_) return;
    absl::erase_if(accounts_, [this](const auto& entry) {
      return !entry.second.waits && (waiting_.empty() || entry.second.served <= now_);
    });
    forget_at_ = 2 * accounts_.size() + kIdleAccounts;
  }

  static constexpr std::size_t kIdleAccounts = 64;
  std::size_t forget_at_ = kIdleAccounts;  // accounts
  double now_ = 0;                         // virtual time: that of the user that was served last
  absl::flat_hash_map<std::uint64_t, Account> accounts_;
  std::vector<std::uint64_t> waiting_;
};

// Waiting items, served fairly between shares, and between the clients of each share. Costs can have any
// unit, but all the same one. Not thread-safe.
//
// Each claimant has some lines, numbered from 0: one for each resource that its items wait for. Items of a
// line keep their order, and may pass those of other lines.
template <typename T>
class FairQueue {
 public:
  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }

  // Ids increase in the order of arrival.
  void Push(const Claimant& claimant, double cost, std::uint64_t id, T value, std::size_t line = 0) {
    shares_.Wait(claimant.share);
    clients_[claimant.share].Wait(claimant.client);
    Items& items = items_[claimant];
    if (items.empty()) ++waiting_;
    if (items.lines.size() <= line) items.lines.resize(line + 1);
    items.lines[line].push_back({id, cost, std::move(value)});
    ++size_;
  }

  // Puts an item back that was taken before. It becomes the first of this line.
  void PutBack(const Claimant& claimant, double cost, std::uint64_t id, T value, std::size_t line) {
    Push(claimant, cost, id, std::move(value), line);
    std::deque<Item>& items = items_.at(claimant).lines[line];
    std::rotate(items.begin(), std::prev(items.end()), items.end());
  }

  // Removes and returns the first item, in fair order, for which fits(item) holds. For each claimant only
  // the first items of its lines are tried, the oldest one first. Returns nothing if none fits.
  template <typename Fits>
  std::optional<T> TakeFirst(const Fits& fits) {
    std::optional<Claimant> taker;
    std::deque<Item>* from = nullptr;
    shares_.VisitInOrder([&](OwnerId share) {
      return clients_.at(share).VisitInOrder([&](ClientId client) {
        const Claimant claimant{share, client};
        from = FirstThatFits(items_.at(claimant), fits);
        if (from != nullptr) taker = claimant;
        return from != nullptr;
      });
    });
    if (!taker.has_value()) return std::nullopt;
    Item item = std::move(from->front());
    from->pop_front();
    shares_.Serve(taker->share, item.cost);
    clients_.at(taker->share).Serve(taker->client, item.cost);
    Removed(*taker);
    return std::move(item.value);
  }
  std::optional<T> TakeFirst() {
    return TakeFirst([](const T&) { return true; });
  }

  // Removes and returns the item with this id; nothing if it is not in the queue.
  std::optional<T> Remove(std::uint64_t id) {
    for (auto& [claimant, items] : items_) {
      for (std::deque<Item>& line : items.lines) {
        const auto found =
            std::find_if(line.begin(), line.end(), [id](const Item& item) { return item.id == id; });
        if (found == line.end()) continue;
        std::optional<T> value = std::move(found->value);
        line.erase(found);
        Removed(Claimant(claimant));
        return value;
      }
    }
    return std::nullopt;
  }

  // Returns how much more the claimant, which waits, has been served than the waiting one that was served
  // least: between the shares or between the clients of its share, whichever is more. Unit: virtual time.
  double LeadOf(const Claimant& claimant) const {
    return std::max(shares_.LeadOf(claimant.share), clients_.at(claimant.share).LeadOf(claimant.client));
  }

  // Corrects the claimant's charge once the real cost of its item is known.
  void Charge(const Claimant& claimant, double difference) {
    shares_.Charge(claimant.share, difference);
    const auto clients = clients_.find(claimant.share);
    if (clients != clients_.end()) clients->second.Charge(claimant.client, difference);
  }

 private:
  struct Item {
    std::uint64_t id;
    double cost;
    T value;
  };
  struct Items {
    std::vector<std::deque<Item>> lines;

    bool empty() const {
      return std::all_of(lines.begin(), lines.end(), [](const auto& line) { return line.empty(); });
    }
  };

  // Returns the line whose first item fits, or null.
  template <typename Fits>
  static std::deque<Item>* FirstThatFits(Items& items, const Fits& fits) {
    absl::InlinedVector<std::deque<Item>*, 4> lines;
    for (std::deque<Item>& line : items.lines) {
      if (!line.empty()) lines.push_back(&line);
    }
    std::sort(lines.begin(), lines.end(),
              [](const auto* a, const auto* b) { return a->front().id < b->front().id; });
    const auto found =
        std::find_if(lines.begin(), lines.end(), [&](const auto* line) { return fits(line->front().value); });
    return found != lines.end() ? *found : nullptr;
  }

  void Removed(const Claimant& claimant) {
    --size_;
    if (!items_.at(claimant).empty()) return;
    --waiting_;
    const auto clients = clients_.find(claimant.share);
    clients->second.StopWaiting(claimant.client);
    if (clients->second.empty()) shares_.StopWaiting(claimant.share);
    ForgetTheIdle();
  }

  // Forgets claimants that do not wait, once there are many of them. Until then their entries stay, because
  // making them again costs more than the rest of Push.
  void ForgetTheIdle() {
    if (items_.size() < 2 * waiting_ + kIdle) return;
    absl::erase_if(items_, [](const auto& entry) { return entry.second.empty(); });
    absl::erase_if(clients_, [](const auto& entry) { return entry.second.empty(); });
  }

  static constexpr std::size_t kIdle = 64;
  std::size_t size_ = 0;
  std::size_t waiting_ = 0;  // claimants that have items
  FairAccounts shares_;
  absl::flat_hash_map<OwnerId, FairAccounts> clients_;  // one for each share
  absl::flat_hash_map<Claimant, Items> items_;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_SCHEDULE_FAIR_QUEUE_H_
