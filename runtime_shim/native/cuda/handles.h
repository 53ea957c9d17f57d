// The set of live objects of one kind, to distinguish an application's handle from a stray pointer.
#pragma once
#include <mutex>
#include <shared_mutex>
#include <unordered_set>

namespace sx {

template <typename T>
class Handles {
 public:
  void add(T *object) {
    std::unique_lock<std::shared_mutex> guard(mutex_);
    live_.insert(object);
  }
  // False if it was not there: of two callers that remove an object one may destroy it.
  bool remove(T *object) {
    std::unique_lock<std::shared_mutex> guard(mutex_);
    return live_.erase(object) != 0;
  }
  T *find(const void *handle) {
    std::shared_lock<std::shared_mutex> guard(mutex_);
    auto found = live_.find(static_cast<T *>(const_cast<void *>(handle)));
    return found == live_.end() ? nullptr : *found;
  }

  // Never destroyed, as the driver itself.
  static Handles &all() {
    static Handles *const instance = new Handles;
    return *instance;
  }

 private:
  std::shared_mutex mutex_;
  std::unordered_set<T *> live_;
};

}  // namespace sx
