#include "client/src/tls_probe.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/src/tls.h"

namespace warpline::client {
namespace {

constexpr absl::Duration kLongest = absl::Seconds(2);
constexpr char kTlsProblemUrl[] = "warpline/tls-problem";

struct Address {
  std::string host, port;
};

// Returns an empty address if the target is not host:port, for example another kind of gRPC name.
Address Split(std::string target) {
  if (absl::StartsWith(target, "dns:")) {
    target = target.substr(absl::StartsWith(target, "dns:///") ? 7 : 4);
  }
  const std::size_t colon = target.rfind(':');
  if (colon == std::string::npos) return {};
  Address address{.host = target.substr(0, colon), .port = target.substr(colon + 1)};
  if (address.host.size() > 2 && address.host.front() == '[' && address.host.back() == ']') {
    address.host = address.host.substr(1, address.host.size() - 2);
  } else if (absl::StrContains(address.host, ":") || absl::StrContains(address.host, "/")) {
    return {};
  }
  return address;
}

// Returns false if the deadline passed.
bool Await(int fd, short events, absl::Time deadline) {
  for (;;) {
    const auto left = absl::ToInt64Milliseconds(deadline - absl::Now());
    pollfd waiting{.fd = fd, .events = events, .revents = 0};
    const int count = left > 0 ? poll(&waiting, 1, static_cast<int>(left)) : 0;
    if (count > 0) return true;
    if (count == 0 || errno != EINTR) return false;
  }
}

// Returns a nonblocking socket, connected to the first address of the host that accepts; -1 if none does.
int Connect(const Address& address, absl::Time deadline) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* first = nullptr;
  if (getaddrinfo(address.host.c_str(), address.port.c_str(), &hints, &first) != 0) return -1;
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> infos(first, freeaddrinfo);
  for (const addrinfo* info = first; info != nullptr; info = info->ai_next) {
    const int fd = socket(info->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) continue;
    int error = connect(fd, info->ai_addr, info->ai_addrlen) == 0 ? 0 : errno;
    if (error == EINPROGRESS && Await(fd, POLLOUT, deadline)) {
      socklen_t size = sizeof(error);
      getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
    }
    if (error == 0) return fd;
    close(fd);
  }
  return -1;
}

// One handshake with the server, and its outcome.
class Probe {
 public:
  Probe(Address address, const TlsOptions& tls, SSL_CTX* context, int fd, absl::Time deadline)
      : address_(std::move(address)), tls_(tls), fd_(fd), deadline_(deadline) {
    SSL_CTX_set_cert_cb(context, NoteThatAsked, this);
    ssl_.reset(SSL_new(context));
    SSL_set_fd(ssl_.get(), fd_);
    SSL_set_app_data(ssl_.get(), this);
    SSL_set_verify(ssl_.get(), tls_.ca.empty() ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, NoteShown);
    static constexpr unsigned char kHttp2[] = {2, 'h', '2'};
    SSL_set_alpn_protos(ssl_.get(), kHttp2, sizeof(kHttp2));
    in6_addr ip{};
    const bool is_ip = inet_pton(AF_INET, address_.host.c_str(), &ip) == 1 ||
                       inet_pton(AF_INET6, address_.host.c_str(), &ip) == 1;
    if (is_ip) {
      X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl_.get()), address_.host.c_str());
    } else {
      X509_VERIFY_PARAM_set1_host(SSL_get0_param(ssl_.get()), address_.host.data(), address_.host.size());
      SSL_set_tlsext_host_name(ssl_.get(), address_.host.c_str());
    }
  }
  ~Probe() {
    ssl_.reset();
    close(fd_);
  }
  Probe(const Probe&) = delete;
  Probe& operator=(const Probe&) = delete;

  // Returns an empty string if no problem was found.
  std::string Explain() {
    const Outcome outcome = Handshake();
    const bool client_speaks = !tls_.ca.empty();
    if (outcome == Outcome::kUnknown) return "";
    if (!client_speaks) return outcome == Outcome::kNotTls ? "" : NeedsTls();
    if (outcome == Outcome::kNotTls) {
      return absl::StrCat(
          Server(), " does not speak TLS, and this client was given tls_ca=", tls_.ca,
          ": leave that out (--tls-ca, $WARPLINE_TLS_CA), or start the server with --tls-cert and "
          "--tls-key");
    }
    if (outcome == Outcome::kNotTrusted) return NotTrusted();
    if (outcome == Outcome::kDone && !SpeaksHttp2()) {
      return absl::StrCat(Server(), " speaks TLS but not HTTP/2: is this the port of its metrics?");
    }
    if (asked_ && (outcome == Outcome::kRefused || !StaysOpen())) return NotAccepted();
    return "";
  }

 private:
  // kUnknown: it took too long, or the connection was closed without any data. Full servers also close it
  // like that.
  enum class Outcome { kDone, kNotTls, kNotTrusted, kRefused, kUnknown };
  struct SslDeleter {
    void operator()(SSL* ssl) const { SSL_free(ssl); }
  };
  struct X509Deleter {
    void operator()(X509* certificate) const { X509_free(certificate); }
  };

  static int NoteThatAsked(SSL*, void* self) {
    static_cast<Probe*>(self)->asked_ = true;
    return 1;
  }

  // Keeps the server's certificate. The connection does not keep it if it is not trusted.
  static int NoteShown(int is_trusted, X509_STORE_CTX* context) {
    const auto* const ssl =
        static_cast<SSL*>(X509_STORE_CTX_get_ex_data(context, SSL_get_ex_data_X509_STORE_CTX_idx()));
    X509* const certificate = X509_STORE_CTX_get0_cert(context);
    if (ssl != nullptr && certificate != nullptr && X509_up_ref(certificate) == 1) {
      static_cast<Probe*>(SSL_get_app_data(ssl))->shown_.reset(certificate);
    }
    return is_trusted;
  }

  // Waits until the last operation can continue. Returns false if it needs no wait, or the wait took too
  // long.
  bool Wait(int result) {
    switch (SSL_get_error(ssl_.get(), result)) {
      case SSL_ERROR_WANT_READ:
        return in_time_ = Await(fd_, POLLIN, deadline_);
      case SSL_ERROR_WANT_WRITE:
        return in_time_ = Await(fd_, POLLOUT, deadline_);
      default:
        return false;
    }
  }

  Outcome Handshake() {
    int result = 0;
    do {
      ERR_clear_error();
      result = SSL_connect(ssl_.get());
      if (result == 1) return Outcome::kDone;
    } while (Wait(result));
    if (!in_time_) return Outcome::kUnknown;
    if (SSL_get_verify_result(ssl_.get()) != X509_V_OK) return Outcome::kNotTrusted;
    // If the server speaks TLS, it has sent its certificate by now, or it sends an alert.
    const bool has_answered = asked_ || SSL_get0_peer_certificate(ssl_.get()) != nullptr;
    const int reason = ERR_GET_REASON(ERR_peek_last_error());
    if (has_answered || reason >= SSL_AD_REASON_OFFSET) return Outcome::kRefused;
    // OpenSSL reports this for bytes that are not TLS.
    return reason == SSL_R_WRONG_VERSION_NUMBER ? Outcome::kNotTls : Outcome::kUnknown;
  }

  bool SpeaksHttp2() const {
    const unsigned char* name = nullptr;
    unsigned int size = 0;
    SSL_get0_alpn_selected(ssl_.get(), &name, &size);
    return size == 2;
  }

  // With TLS 1.3, a client learns only after its own handshake whether the server accepts its certificate. An
  // HTTP/2 server that accepts it sends data at once.
  bool StaysOpen() {
    char byte = 0;
    int result = 0;
    do {
      ERR_clear_error();
      result = SSL_read(ssl_.get(), &byte, 1);
    } while (result <= 0 && Wait(result));
    return result > 0 || !in_time_;
  }

  std::string Server() const { return absl::StrCat("the server at ", address_.host, ":", address_.port); }

  std::string NeedsTls() const {
    return absl::StrCat(Server(),
                        " speaks TLS, and this client does not: it needs the CA that has signed the server's "
                        "certificate, as tls_ca (--tls-ca, $WARPLINE_TLS_CA)");
  }

  std::string NotTrusted() const {
    const long why = SSL_get_verify_result(ssl_.get());
    const std::string reason = X509_verify_cert_error_string(why);
    const std::string subject =
        shown_ != nullptr ? absl::StrCat(" (", Printed(X509_get_subject_name(shown_.get())), ", issued by ",
                                         Printed(X509_get_issuer_name(shown_.get())), ")")
                          : "";
    const bool is_name = why == X509_V_ERR_HOSTNAME_MISMATCH || why == X509_V_ERR_IP_ADDRESS_MISMATCH;
    const std::string what =
        is_name                              ? absl::StrCat("is not for ", address_.host,
                                                            ": its subjectAltName must have the name or address that clients use")
        : why == X509_V_ERR_CERT_HAS_EXPIRED ? std::string("has expired")
        : why == X509_V_ERR_CERT_NOT_YET_VALID
            ? std::string("is not valid yet")
            : absl::StrCat("is not trusted by tls_ca=", tls_.ca, ": ", reason);
    return absl::StrCat("the certificate of ", Server(), subject, " ", what);
  }

  std::string NotAccepted() const {
    const X509* const own = SSL_get_certificate(ssl_.get());
    std::string wanted;
    const STACK_OF(X509_NAME)* const names = SSL_get0_peer_CA_list(ssl_.get());
    for (int i = 0; i < sk_X509_NAME_num(names); ++i) {
      absl::StrAppend(&wanted, wanted.empty() ? ", signed by " : " or ",
                      Printed(sk_X509_NAME_value(names, i)));
    }
    if (own == nullptr) {
      return absl::StrCat(Server(), " wants a client certificate", wanted,
                          ": give tls_cert and tls_key (--tls-cert, --tls-key, $WARPLINE_TLS_CERT, "
                          "$WARPLINE_TLS_KEY)");
    }
    int days = 0, seconds = 0;  // from now on; both negative in the past
    const bool is_over =
        ASN1_TIME_diff(&days, &seconds, nullptr, X509_get0_notAfter(own)) == 1 && days + seconds < 0;
    return absl::StrCat(Server(), " does not accept this client's certificate tls_cert=", tls_.cert, " (",
                        Printed(X509_get_subject_name(own)), ", issued by ",
                        Printed(X509_get_issuer_name(own)), is_over ? ", which has expired" : "",
                        "): it wants one", wanted);
  }

  const Address address_;
  const TlsOptions& tls_;
  const int fd_;
  const absl::Time deadline_;
  std::unique_ptr<SSL, SslDeleter> ssl_;
  std::unique_ptr<X509, X509Deleter> shown_;  // by the server
  bool asked_ = false;                        // the server asked for a certificate
  bool in_time_ = true;
};

}  // namespace

std::string ExplainTls(const std::string& target, const TlsOptions& tls, absl::Time deadline) {
  const Address address = Split(target);
  if (address.host.empty() || absl::StartsWith(target, "unix:")) return "";
  const absl::StatusOr<SslContext> context = NewClientContext(tls);
  if (!context.ok()) return "";
  const absl::Time until = std::min(deadline, absl::Now() + kLongest);
  const int fd = Connect(address, until);
  if (fd < 0) return "";
  return Probe(address, tls, context->get(), fd, until).Explain();
}

absl::Status WithTlsProblem(const absl::Status& status, const std::string& target, const TlsOptions& tls,
                            absl::Time deadline) {
  // gRPC's own text of this error.
  if (!absl::IsUnavailable(status) || !absl::StrContains(status.message(), "failed to connect"))
    return status;
  const std::string problem = ExplainTls(target, tls, deadline);
  if (problem.empty()) return status;
  absl::Status explained(status.code(), absl::StrCat(problem, " (gRPC: ", status.message(), ")"));
  status.ForEachPayload(
      [&](absl::string_view url, const absl::Cord& payload) { explained.SetPayload(url, payload); });
  explained.SetPayload(kTlsProblemUrl, absl::Cord());
  return explained;
}

bool HasTlsProblem(const absl::Status& status) { return status.GetPayload(kTlsProblemUrl).has_value(); }

}  // namespace warpline::client
