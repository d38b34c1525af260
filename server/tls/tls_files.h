// The names of the TLS files.
#ifndef WARPLINE_SERVER_TLS_TLS_FILES_H_
#define WARPLINE_SERVER_TLS_TLS_FILES_H_

#include <string>

namespace warpline {

// Paths of PEM files. Without a certificate there is no TLS.
struct TlsFiles {
  std::string cert;       // the server's certificate, followed by those of the CAs up to the root
  std::string key;        // its private key, without a pass phrase
  std::string client_ca;  // the CAs that sign certificates of clients; empty: clients need none

  bool configured() const { return !cert.empty(); }
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_TLS_TLS_FILES_H_
