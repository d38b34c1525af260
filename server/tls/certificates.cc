#include "server/tls/certificates.h"

#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "kernels/status_macros.h"
#include "server/base/unique_fd.h"

namespace warpline {
namespace {

constexpr std::size_t kMaxFileBytes = std::size_t{1} << 20;

template <typename T, void (*Free)(T*)>
struct Deleter {
  void operator()(T* object) const { Free(object); }
};
void FreeBio(BIO* bio) { BIO_free(bio); }
using Bio = std::unique_ptr<BIO, Deleter<BIO, FreeBio>>;
using X509Ptr = std::unique_ptr<X509, Deleter<X509, X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Deleter<EVP_PKEY, EVP_PKEY_free>>;

absl::Status BadFile(std::string_view flag, const std::string& path, std::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("--", std::string(flag), "=", path, ": ", std::string(why)));
}

// Returns the reason of OpenSSL's last error, and clears OpenSSL's list of errors.
std::string TakeOpenSslError() {
  const char* const reason = ERR_reason_error_string(ERR_peek_last_error());
  std::string text = reason != nullptr ? reason : "unknown error";
  ERR_clear_error();
  return text;
}

absl::StatusOr<std::string> ReadFile(std::string_view flag, const std::string& path) {
  // O_NONBLOCK: do not wait for the writer of a pipe.
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.ok()) return BadFile(flag, path, std::strerror(errno));
  struct stat found {};
  if (fstat(fd.get(), &found) != 0) return BadFile(flag, path, std::strerror(errno));
  if (!S_ISREG(found.st_mode)) return BadFile(flag, path, "must be a regular file");
  std::string bytes;
  char buffer[16384];
  for (;;) {
    const ssize_t count = read(fd.get(), buffer, sizeof(buffer));
    if (count < 0) return BadFile(flag, path, std::strerror(errno));
    if (count == 0) return bytes;
    bytes.append(buffer, static_cast<std::size_t>(count));
    if (bytes.size() > kMaxFileBytes) {
      return BadFile(flag, path, absl::StrCat("is larger than ", kMaxFileBytes, " bytes"));
    }
  }
}

Bio BioOf(const std::string& bytes) {
  return Bio(BIO_new_mem_buf(bytes.data(), static_cast<int>(bytes.size())));
}

// Returns all certificates in a file, in their order.
absl::StatusOr<std::vector<X509Ptr>> ParseCertificates(std::string_view flag, const std::string& path,
                                                       const std::string& pem) {
  const Bio bio = BioOf(pem);
  std::vector<X509Ptr> certificates;
  ERR_clear_error();
  while (X509* const certificate = PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)) {
    certificates.emplace_back(certificate);
  }
  const bool at_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  const std::string reason = TakeOpenSslError();
  if (certificates.empty() && at_end) return BadFile(flag, path, "holds no certificate in PEM form");
  if (!at_end) {
    return BadFile(
        flag, path,
        absl::StrCat("its certificate number ", certificates.size() + 1, " cannot be read: ", reason));
  }
  return certificates;
}

absl::StatusOr<Key> ParseKey(const std::string& path, const std::string& pem) {
  bool wants_pass_phrase = false;
  const auto refuse = [](char*, int, int, void* asked) {
    *static_cast<bool*>(asked) = true;
    return -1;
  };
  ERR_clear_error();
  Key key(PEM_read_bio_PrivateKey(BioOf(pem).get(), nullptr, refuse, &wants_pass_phrase));
  const bool absent = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  const std::string reason = TakeOpenSslError();
  if (key != nullptr) return key;
  if (wants_pass_phrase)
    return BadFile("tls-key", path, "needs a pass phrase, which nobody can be asked for");
  if (absent || pem.find("PRIVATE KEY-----") == std::string::npos) {
    return BadFile("tls-key", path, "holds no private key in PEM form");
  }
  return BadFile("tls-key", path, absl::StrCat("its private key cannot be read: ", reason));
}

absl::Time ToTime(const ASN1_TIME* time) {
  std::tm parts{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return absl::InfinitePast();
  return absl::FromTM(parts, absl::UTCTimeZone());
}

std::string SubjectOf(const X509* certificate) {
  const Bio bio(BIO_new(BIO_s_mem()));
  X509_NAME_print_ex(bio.get(), X509_get_subject_name(certificate), 0, XN_FLAG_RFC2253);
  char* text = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &text);
  return {text, static_cast<std::size_t>(size)};
}

std::string Printed(absl::Time time) {
  return absl::FormatTime(absl::RFC3339_sec, time, absl::UTCTimeZone());
}

// Returns false on failure; the errors are in OpenSSL's list.
bool Fill(SSL_CTX* context, const Certificates& certificates) {
  const Bio chain = BioOf(certificates.chain_pem);
  bool is_first = true;
  while (X509* const next = PEM_read_bio_X509(chain.get(), nullptr, nullptr, nullptr)) {
    X509Ptr certificate(next);
    if (is_first) {
      if (SSL_CTX_use_certificate(context, certificate.get()) != 1) return false;
    } else {
      if (SSL_CTX_add_extra_chain_cert(context, certificate.get()) != 1) return false;
      static_cast<void>(certificate.release());  // the context owns it
    }
    is_first = false;
  }
  ERR_clear_error();  // the error at the end of the file
  const Key key(PEM_read_bio_PrivateKey(BioOf(certificates.key_pem).get(), nullptr, nullptr, nullptr));
  if (key == nullptr || SSL_CTX_use_PrivateKey(context, key.get()) != 1) return false;
  if (SSL_CTX_check_private_key(context) != 1) return false;
  if (certificates.client_ca_pem.empty()) return true;
  const Bio cas = BioOf(certificates.client_ca_pem);
  X509_STORE* const store = SSL_CTX_get_cert_store(context);
  // Accepts a CA that another CA has signed, even if the file does not contain that other CA. gRPC does the
  // same.
  X509_STORE_set_flags(store, X509_V_FLAG_PARTIAL_CHAIN);
  while (X509* const next = PEM_read_bio_X509(cas.get(), nullptr, nullptr, nullptr)) {
    const X509Ptr certificate(next);
    // Clients with several certificates choose by these names.
    if (X509_STORE_add_cert(store, certificate.get()) != 1) return false;
    if (SSL_CTX_add_client_CA(context, certificate.get()) != 1) return false;
  }
  ERR_clear_error();
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  return true;
}

}  // namespace

absl::StatusOr<TlsFileContents> ReadTlsFiles(const TlsFiles& files) {
  TlsFileContents contents;
  ASSIGN_OR_RETURN(contents.cert, ReadFile("tls-cert", files.cert));
  ASSIGN_OR_RETURN(contents.key, ReadFile("tls-key", files.key));
  if (!files.client_ca.empty()) {
    ASSIGN_OR_RETURN(contents.client_ca, ReadFile("tls-client-ca", files.client_ca));
  }
  return contents;
}

absl::StatusOr<Certificates> CheckCertificates(const TlsFiles& files, TlsFileContents contents,
                                               absl::Time now) {
  ASSIGN_OR_RETURN(const std::vector<X509Ptr> chain,
                   ParseCertificates("tls-cert", files.cert, contents.cert));
  ASSIGN_OR_RETURN(const Key key, ParseKey(files.key, contents.key));
  const X509* const certificate = chain.front().get();
  const std::string subject = SubjectOf(certificate);
  if (X509_check_private_key(certificate, key.get()) != 1) {
    ERR_clear_error();
    return BadFile(
        "tls-key", files.key,
        absl::StrCat("is not the key of the certificate ", subject, " in --tls-cert=", files.cert));
  }
  const absl::Time not_before = ToTime(X509_get0_notBefore(certificate));
  const absl::Time not_after = ToTime(X509_get0_notAfter(certificate));
  if (now > not_after) {
    return BadFile("tls-cert", files.cert,
                   absl::StrCat("the certificate ", subject, " expired at ", Printed(not_after)));
  }
  if (now < not_before) {
    return BadFile("tls-cert", files.cert,
                   absl::StrCat("the certificate ", subject, " is not valid before ", Printed(not_before)));
  }
  if (!files.client_ca.empty()) {
    RETURN_IF_ERROR(ParseCertificates("tls-client-ca", files.client_ca, contents.client_ca).status());
  }
  Certificates certificates{.chain_pem = std::move(contents.cert),
                            .key_pem = std::move(contents.key),
                            .client_ca_pem = std::move(contents.client_ca),
                            .subject = subject,
                            .not_after = not_after};
  if (NewServerContext(certificates) == nullptr) {
    return BadFile("tls-cert", files.cert, absl::StrCat("OpenSSL refuses it: ", TakeOpenSslError()));
  }
  return certificates;
}

SslContext NewServerContext(const Certificates& certificates) {
  ERR_clear_error();
  SslContext context(SSL_CTX_new(TLS_server_method()));
  if (context == nullptr) return nullptr;
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  // Clients reconnect too rarely for session resumption to be worth its risks.
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_options(context.get(), SSL_OP_NO_TICKET);
  SSL_CTX_set_num_tickets(context.get(), 0);
  SSL_CTX_set_mode(context.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  // Otherwise one read would process any number of protocol messages from a client.
  SSL_CTX_clear_mode(context.get(), SSL_MODE_AUTO_RETRY);
  if (!Fill(context.get(), certificates)) return nullptr;
  return context;
}

}  // namespace warpline
