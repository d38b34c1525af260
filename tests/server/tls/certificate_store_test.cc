#include "server/tls/certificate_store.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "tests/testing/certificates.h"
#include "tests/testing/patience.h"

namespace warpline {
namespace {

constexpr absl::Duration kPeriod = absl::Milliseconds(1);

class CertificateStoreTest : public ::testing::Test {
 protected:
  void Put(const TestCertificate& certificate) const {
    folder_.Put("tls.crt", certificate.cert);
    folder_.Put("tls.key", certificate.key);
  }
  // Returns once the store has the certificates of this subject.
  static std::shared_ptr<const Certificates> Await(const CertificateStore& store,
                                                   const std::string& subject) {
    AwaitThat(subject, [&] { return store.current()->subject == subject; });
    return store.current();
  }

  const TestFolder folder_;
  const TestCa ca_;
  const TestCertificate first_ = ca_.Issue({.common_name = "first"});
  const TestCertificate second_ = ca_.Issue({.common_name = "second"});
  const TlsFiles files_{.cert = folder_.Put("tls.crt", first_.cert),
                        .key = folder_.Put("tls.key", first_.key)};
};

TEST_F(CertificateStoreTest, FollowsTheFiles) {
  Mutex mutex;
  std::vector<std::string> subjects;
  const auto listen = [&](const Certificates& certificates) {
    MutexLock lock(&mutex);
    subjects.push_back(certificates.subject);
  };
  const auto store = CertificateStore::Open(files_, listen, kPeriod);
  ASSERT_TRUE(store.ok()) << store.status();
  const std::shared_ptr<const Certificates> before = (*store)->current();
  EXPECT_EQ(before->subject, "CN=first,O=Example");
  EXPECT_EQ((*store)->current(), before) << "there is a new object without a change";
  Put(second_);
  EXPECT_EQ(Await(**store, "CN=second,O=Example")->key_pem, second_.key);
  EXPECT_EQ(before->key_pem, first_.key) << "those who still have the first one see it change";
  MutexLock lock(&mutex);
  const auto both = [&] { return subjects.size() == 2; };
  if (!mutex.AwaitUntil(both, MonotonicClock::now() + kPatience)) NeverCame("both subjects");
  EXPECT_EQ(subjects, (std::vector<std::string>{"CN=first,O=Example", "CN=second,O=Example"}));
}

TEST_F(CertificateStoreTest, KeepsThePairUntilTheNextOneIsWhole) {
  const auto store = CertificateStore::Open(files_, nullptr, kPeriod);
  ASSERT_TRUE(store.ok()) << store.status();
  const std::shared_ptr<const Certificates> before = (*store)->current();
  const std::vector<std::string> certs = {second_.cert, second_.cert.substr(0, 100), "",
                                          ca_.Issue({.valid_until = -absl::Minutes(1)}).cert};
  for (const std::string& cert : certs) {
    folder_.Put("tls.crt", cert);
    absl::SleepFor(20 * kPeriod);  // it has looked, most likely
    EXPECT_EQ((*store)->current(), before);
  }
  Put(second_);
  Await(**store, "CN=second,O=Example");
}

TEST_F(CertificateStoreTest, DoesNotBeginWithoutAPair) {
  folder_.Put("tls.crt", second_.cert);
  EXPECT_TRUE(absl::IsInvalidArgument(CertificateStore::Open(files_).status()));
}

}  // namespace
}  // namespace warpline
