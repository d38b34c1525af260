// A queue that serves its owners in fair shares.
#ifndef WARPLINE_SERVER_SCHEDULE_FAIR_QUEUE_H_
#define WARPLINE_SERVER_SCHEDULE_FAIR_QUEUE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "server/schedule/owner.h"

namespace warpline {

// Start-time fair queueing (P. Goyal, H. M. Vin, H. Cheng, "Start-time Fair Queueing", 1996): every owner has
// an account of the cost it has been served, in a virtual time, and of the owners that wait the one with the
// least is next. An owner that comes back after a pause starts at the present virtual time, so nobody saves
// up a claim by waiting. Costs are in any one unit. Not thread-safe.
//
// Items of one owner keep their order, except that those which wait for something that others do without may
// be passed by those others.
template <typename T>
class FairQueue {
 public:
  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }

  // Ids grow with the age of what they name.
  void Push(OwnerId owner, double cost, std::uint64_t id, T value, bool may_be_passed = false) {
    Account& account = accounts_[owner];
    if (account.empty()) {
      account.served = std::max(account.served, now_);
      waiting_.push_back(owner);
    }
    (may_be_passed ? account.passed : account.items).push_back({id, cost, std::move(value)});
    ++size_;
  }

  // Removes and returns the first item, in fair order, for which fits(item) holds. Of each owner only the
  // oldest item is looked at, and the oldest that may be passed, the older one of the two first. Nothing if
  // none fits.
  template <typename Fits>
  std::optional<T> TakeFirst(const Fits& fits) {
    if (waiting_.empty()) return std::nullopt;
    const auto served = [this](OwnerId owner) { return accounts_[owner].served; };
    // Most of the time the first owner's item fits, and nobody needs to know the order of the others.
    const OwnerId first = *std::min_element(waiting_.begin(), waiting_.end(),
                                            [&](OwnerId a, OwnerId b) { return served(a) < served(b); });
    if (std::optional<T> value = TakeFrom(first, fits); value.has_value()) return value;
    std::vector<std::pair<double, OwnerId>> others;
    for (OwnerId owner : waiting_) {
      if (owner != first) others.emplace_back(served(owner), owner);
    }
    std::stable_sort(others.begin(), others.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [unused, owner] : others) {
      if (std::optional<T> value = TakeFrom(owner, fits); value.has_value()) return value;
    }
    return std::nullopt;
  }
  std::optional<T> TakeFirst() {
    return TakeFirst([](const T&) { return true; });
  }

  // Removes the item with this id; nothing if it is not here.
  std::optional<T> Remove(std::uint64_t id) {
    for (OwnerId owner : waiting_) {
      Account& account = accounts_[owner];
      for (std::deque<Item>* items : {&account.items, &account.passed}) {
        const auto found =
            std::find_if(items->begin(), items->end(), [id](const Item& item) { return item.id == id; });
        if (found == items->end()) continue;
        std::optional<T> value = std::move(found->value);
        items->erase(found);
        Removed(owner, account);
        return value;
      }
    }
    return std::nullopt;
  }

  // What the owner, which waits, has been served, and what the one that has been served least. In virtual
  // time: differences between the two mean something.
  double ServedOf(OwnerId owner) const { return accounts_.at(owner).served; }
  double LeastServed() const {
    double least = std::numeric_limits<double>::infinity();
    for (OwnerId owner : waiting_) least = std::min(least, ServedOf(owner));
    return least;
  }

  // Corrects what the owner has been charged, once it is known what its item really cost.
  void Charge(OwnerId owner, double difference) {
    const auto account = accounts_.find(owner);
    if (account != accounts_.end()) account->second.served += difference;
  }

 private:
  struct Item {
    std::uint64_t id;
    double cost;
    T value;
  };
  struct Account {
    double served = 0;
    std::deque<Item> items;
    std::deque<Item> passed;  // those that may be

    bool empty() const { return items.empty() && passed.empty(); }
  };

  template <typename Fits>
  std::optional<T> TakeFrom(OwnerId owner, const Fits& fits) {
    Account& account = accounts_[owner];
    std::deque<Item>* const items = FirstThatFits(account, fits);
    if (items == nullptr) return std::nullopt;
    Item item = std::move(items->front());
    items->pop_front();
    now_ = std::max(now_, account.served);
    account.served += item.cost;
    Removed(owner, account);
    return std::move(item.value);
  }

  // The queue of the account whose first item is to be taken, or null.
  template <typename Fits>
  static std::deque<Item>* FirstThatFits(Account& account, const Fits& fits) {
    std::deque<Item>* queues[] = {&account.items, &account.passed};
    if (!account.items.empty() && !account.passed.empty() &&
        account.passed.front().id < account.items.front().id) {
      std::swap(queues[0], queues[1]);
    }
    for (std::deque<Item>* items : queues) {
      if (!items->empty() && fits(items->front().value)) return items;
    }
    return nullptr;
  }

  void Removed(OwnerId owner, const Account& account) {
    --size_;
    if (!account.empty()) return;
    waiting_.erase(std::find(waiting_.begin(), waiting_.end(), owner));
    ForgetTheIdle();
  }
  // An account without items says nothing once the virtual time has passed it. Looking at all of them now and
  // then keeps their number within a constant of those that wait.
  void ForgetTheIdle() {
    if (accounts_.size() < 2 * waiting_.size() + kIdleAccounts) return;
    absl::erase_if(accounts_, [this](const auto& entry) {
      return entry.second.empty() && (waiting_.empty() || entry.second.served <= now_);
    });
  }

  static constexpr std::size_t kIdleAccounts = 64;
  double now_ = 0;  // virtual time: of the item that was served last
  std::size_t size_ = 0;
  absl::flat_hash_map<OwnerId, Account> accounts_;
  std::vector<OwnerId> waiting_;  // that have items
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_SCHEDULE_FAIR_QUEUE_H_
