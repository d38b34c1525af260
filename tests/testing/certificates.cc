#include "tests/testing/certificates.h"

#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/rsa.h>
#include <openssl/x509v3.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>

namespace warpline {
namespace {

void Check(bool ok, const char* what) {
  if (!ok) throw std::runtime_error(what);
}

using BioPtr = std::unique_ptr<BIO, decltype(&BIO_free)>;

std::string Bytes(const BioPtr& bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return {data, static_cast<std::size_t>(size)};
}

std::string Pem(X509* certificate) {
  const BioPtr bio(BIO_new(BIO_s_mem()), BIO_free);
  PEM_write_bio_X509(bio.get(), certificate);
  return Bytes(bio);
}

std::string Pem(EVP_PKEY* key) {
  const BioPtr bio(BIO_new(BIO_s_mem()), BIO_free);
  PEM_write_bio_PrivateKey(bio.get(), key, nullptr, nullptr, 0, nullptr, nullptr);
  return Bytes(bio);
}

std::shared_ptr<EVP_PKEY> NewKey(int rsa_bits) {
  EVP_PKEY* const key = rsa_bits > 0 ? EVP_RSA_gen(static_cast<unsigned int>(rsa_bits)) : EVP_EC_gen("P-256");
  Check(key != nullptr, "no key");
  return {key, EVP_PKEY_free};
}

void AddExtension(X509* certificate, int nid, const std::string& value) {
  X509_EXTENSION* const extension = X509V3_EXT_conf_nid(nullptr, nullptr, nid, value.c_str());
  Check(extension != nullptr, "no extension");
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

// `issuer`: null for one that signs itself.
std::shared_ptr<X509> NewCertificate(const TestCertificateOptions& options, EVP_PKEY* key, X509* issuer,
                                     EVP_PKEY* issuer_key, bool is_ca) {
  const std::shared_ptr<X509> certificate(X509_new(), X509_free);
  X509_set_version(certificate.get(), X509_VERSION_3);
  std::int64_t serial = 0;
  RAND_bytes(reinterpret_cast<unsigned char*>(&serial), 7);
  ASN1_INTEGER_set_int64(X509_get_serialNumber(certificate.get()), serial);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), absl::ToInt64Seconds(options.valid_from));
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), absl::ToInt64Seconds(options.valid_until));
  X509_NAME* const name = X509_get_subject_name(certificate.get());
  const auto add = [&](const char* field, const std::string& value) {
    X509_NAME_add_entry_by_txt(name, field, MBSTRING_UTF8,
                               reinterpret_cast<const unsigned char*>(value.c_str()), -1, -1, 0);
  };
  add("O", "Example");
  add("CN", options.common_name);
  X509_set_issuer_name(certificate.get(), issuer != nullptr ? X509_get_subject_name(issuer) : name);
  X509_set_pubkey(certificate.get(), key);
  if (is_ca) AddExtension(certificate.get(), NID_basic_constraints, "critical,CA:TRUE");
  if (!is_ca && !options.alternative_names.empty()) {
    AddExtension(certificate.get(), NID_subject_alt_name, options.alternative_names);
  }
  Check(X509_sign(certificate.get(), issuer_key, EVP_sha256()) > 0, "not signed");
  return certificate;
}

}  // namespace

TestCa::TestCa(const std::string& name)
    : key_(NewKey(0)),
      certificate_(NewCertificate({.common_name = name}, key_.get(), nullptr, key_.get(), true)),
      cert_(Pem(certificate_.get())) {}

TestCertificate TestCa::Issue(const TestCertificateOptions& options) const {
  const std::shared_ptr<EVP_PKEY> key = NewKey(options.rsa_bits);
  return {Pem(NewCertificate(options, key.get(), certificate_.get(), key_.get(), false).get()),
          Pem(key.get())};
}

TestCertificate SelfSigned(const TestCertificateOptions& options) {
  const std::shared_ptr<EVP_PKEY> key = NewKey(options.rsa_bits);
  return {Pem(NewCertificate(options, key.get(), nullptr, key.get(), false).get()), Pem(key.get())};
}

TestFolder::TestFolder() {
  path_ = std::filesystem::temp_directory_path() / "warpline_tls.XXXXXX";
  Check(mkdtemp(path_.data()) != nullptr, "mkdtemp");
}

TestFolder::~TestFolder() { std::filesystem::remove_all(path_); }

std::string TestFolder::Put(const std::string& name, const std::string& bytes) const {
  const std::string path = Path(name);
  std::ofstream(path + ".new", std::ios::binary) << bytes;
  std::filesystem::rename(path + ".new", path);
  return path;
}

}  // namespace warpline
