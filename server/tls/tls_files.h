// The names of the files that TLS is configured by.
#ifndef WARPLINE_SERVER_TLS_TLS_FILES_H_
#define WARPLINE_SERVER_TLS_TLS_FILES_H_

#include <string>

namespace warpline {

// Paths of PEM files. Without a certificate there is no TLS.
struct TlsFiles {
  std::string cert;       // the server's certificate, then those of the CAs between it and the root
  std::string key;        // its private key, without a pass phrase
  std::string client_ca;  // the CAs that sign certificates of clients; empty: clients show none

  bool configured() const { return !cert.empty(); }
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_TLS_TLS_FILES_H_
