#include "tests/e2e/https.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include <cstdlib>
#include <memory>

#include "tests/e2e/http2.h"

namespace warpline {
namespace {

using BioPtr = std::unique_ptr<BIO, decltype(&BIO_free)>;

BioPtr BioOf(const std::string& bytes) {
  return {BIO_new_mem_buf(bytes.data(), static_cast<int>(bytes.size())), BIO_free};
}

std::string LastError() {
  char text[256] = "the connection was closed";
  if (const unsigned long error = ERR_get_error(); error != 0) ERR_error_string_n(error, text, sizeof(text));
  return text;
}

std::string SubjectOf(const X509* certificate) {
  const BioPtr bio(BIO_new(BIO_s_mem()), BIO_free);
  X509_NAME_print_ex(bio.get(), X509_get_subject_name(certificate), 0, XN_FLAG_RFC2253);
  char* text = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &text);
  return {text, static_cast<std::size_t>(size)};
}

}  // namespace

HttpsReply HttpsGet(const std::string& address, const std::string& path, const std::string& ca,
                    const TestCertificate& client) {
  ERR_clear_error();
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(SSL_CTX_new(TLS_client_method()),
                                                                  SSL_CTX_free);
  const std::unique_ptr<X509, decltype(&X509_free)> trusted(
      PEM_read_bio_X509(BioOf(ca).get(), nullptr, nullptr, nullptr), X509_free);
  X509_STORE_add_cert(SSL_CTX_get_cert_store(context.get()), trusted.get());
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  if (!client.cert.empty()) {
    const std::unique_ptr<X509, decltype(&X509_free)> own(
        PEM_read_bio_X509(BioOf(client.cert).get(), nullptr, nullptr, nullptr), X509_free);
    const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(
        PEM_read_bio_PrivateKey(BioOf(client.key).get(), nullptr, nullptr, nullptr), EVP_PKEY_free);
    SSL_CTX_use_certificate(context.get(), own.get());
    SSL_CTX_use_PrivateKey(context.get(), key.get());
  }
  const UniqueFd fd = Connect(address);
  const std::unique_ptr<SSL, decltype(&SSL_free)> ssl(SSL_new(context.get()), SSL_free);
  SSL_set_fd(ssl.get(), fd.get());
  X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl.get()), address.substr(0, address.rfind(':')).c_str());
  if (SSL_connect(ssl.get()) != 1) return {.error = LastError()};
  HttpsReply reply{.subject = SubjectOf(SSL_get0_peer_certificate(ssl.get()))};
  const std::string request = "GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n";
  std::string text;
  if (SSL_write(ssl.get(), request.data(), static_cast<int>(request.size())) > 0) {
    char buffer[16384];
    for (int n = 0; (n = SSL_read(ssl.get(), buffer, sizeof(buffer))) > 0;) {
      text.append(buffer, static_cast<std::size_t>(n));
    }
  }
  const std::size_t body = text.find("\r\n\r\n");
  if (body == std::string::npos) {
    reply.error = LastError();
    return reply;
  }
  reply.status = std::atoi(text.c_str() + 9);
  reply.body = text.substr(body + 4);
  return reply;
}

}  // namespace warpline
