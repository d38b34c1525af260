#include "client/src/tls.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/x509.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string_view>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "kernels/status_macros.h"

namespace warpline::client {
namespace {

absl::Status BadFile(std::string_view option, const std::string& path, std::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(std::string(option), "=", path, ": ", std::string(why)));
}

absl::StatusOr<std::string> ReadFile(std::string_view option, const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(file)), {});
  if (file.bad() || !file.is_open() || (bytes.empty() && errno != 0)) {
    return BadFile(option, path, errno != 0 ? std::strerror(errno) : "cannot be read");
  }
  return bytes;
}

absl::Status CheckNames(const TlsOptions& tls) {
  if (tls.cert.empty() != tls.key.empty()) {
    return tls.cert.empty() ? BadFile("tls_key", tls.key, "needs tls_cert")
                            : BadFile("tls_cert", tls.cert, "needs tls_key");
  }
  if (tls.ca.empty() && !tls.cert.empty()) {
    return BadFile("tls_cert", tls.cert, "needs tls_ca, the CA of the server's certificate");
  }
  return absl::OkStatus();
}

}  // namespace

bool SpeaksTls(const std::string& target, const TlsOptions& tls) {
  const bool is_unix = absl::StartsWith(target, "unix:") || absl::StartsWith(target, "unix-abstract:");
  return !is_unix && !(tls.ca.empty() && tls.cert.empty() && tls.key.empty());
}

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> CredentialsFor(const std::string& target,
                                                                         const TlsOptions& tls) {
  if (!SpeaksTls(target, tls)) return grpc::InsecureChannelCredentials();
  RETURN_IF_ERROR(NewClientContext(tls).status());
  grpc::SslCredentialsOptions options;
  ASSIGN_OR_RETURN(options.pem_root_certs, ReadFile("tls_ca", tls.ca));
  if (!tls.cert.empty()) {
    ASSIGN_OR_RETURN(options.pem_cert_chain, ReadFile("tls_cert", tls.cert));
    ASSIGN_OR_RETURN(options.pem_private_key, ReadFile("tls_key", tls.key));
  }
  return grpc::SslCredentials(options);
}

absl::StatusOr<SslContext> NewClientContext(const TlsOptions& tls) {
  RETURN_IF_ERROR(CheckNames(tls));
  ERR_clear_error();
  SslContext context(SSL_CTX_new(TLS_client_method()));
  if (context == nullptr) return absl::InternalError("OpenSSL has no memory");
  if (!tls.ca.empty()) {
    RETURN_IF_ERROR(ReadFile("tls_ca", tls.ca).status());
    if (SSL_CTX_load_verify_file(context.get(), tls.ca.c_str()) != 1) {
      return BadFile("tls_ca", tls.ca, "holds no certificate in PEM form");
    }
    // The file may contain only an intermediate CA, as with gRPC.
    X509_STORE_set_flags(SSL_CTX_get_cert_store(context.get()), X509_V_FLAG_PARTIAL_CHAIN);
    SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  }
  if (!tls.cert.empty()) {
    RETURN_IF_ERROR(ReadFile("tls_cert", tls.cert).status());
    RETURN_IF_ERROR(ReadFile("tls_key", tls.key).status());
    // Never ask for a pass phrase.
    SSL_CTX_set_default_passwd_cb(context.get(), [](char*, int, int, void*) { return -1; });
    if (SSL_CTX_use_certificate_chain_file(context.get(), tls.cert.c_str()) != 1) {
      return BadFile("tls_cert", tls.cert, "holds no certificate in PEM form");
    }
    // This call alone would also refuse a key that does not match the certificate, but with a less clear
    // error.
    if (SSL_CTX_use_PrivateKey_file(context.get(), tls.key.c_str(), SSL_FILETYPE_PEM) != 1) {
      const bool mismatch = ERR_GET_REASON(ERR_peek_last_error()) == X509_R_KEY_VALUES_MISMATCH ||
                            ERR_GET_REASON(ERR_peek_last_error()) == X509_R_KEY_TYPE_MISMATCH;
      return BadFile("tls_key", tls.key,
                     mismatch ? absl::StrCat("is not the key of tls_cert=", tls.cert)
                              : "holds no private key in PEM form without a pass phrase");
    }
  }
  ERR_clear_error();
  return context;
}

std::string Printed(const X509_NAME* name) {
  const std::unique_ptr<BIO, decltype(&BIO_free)> bio(BIO_new(BIO_s_mem()), BIO_free);
  X509_NAME_print_ex(bio.get(), name, 0, XN_FLAG_RFC2253);
  char* text = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &text);
  return {text, static_cast<std::size_t>(size)};
}

}  // namespace warpline::client
