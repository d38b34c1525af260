// The files of a server that speaks TLS, and of its clients.
#ifndef WARPLINE_TESTS_E2E_TLS_FILES_H_
#define WARPLINE_TESTS_E2E_TLS_FILES_H_

#include <string>
#include <vector>

#include "tests/testing/certificates.h"

namespace warpline {

// Made by one CA, "test CA": the server's certificate, and that of a client, alice.
struct TlsTestFiles {
  TlsTestFiles()
      : cert(folder.Path("server.crt")),
        key(folder.Path("server.key")),
        ca_file(folder.Put("ca.crt", ca.cert())) {
    PutServer(ca.Issue());
    PutClient("alice", ca.Issue({.common_name = "alice"}));
  }

  void PutServer(const TestCertificate& server) const {
    folder.Put("server.crt", server.cert);
    folder.Put("server.key", server.key);
  }
  void PutClient(const std::string& name, const TestCertificate& client) const {
    folder.Put(name + ".crt", client.cert);
    folder.Put(name + ".key", client.key);
  }
  // Flags of the command line, behind a space.
  std::string Ca() const { return " --tls-ca " + ca_file; }
  std::string AsClient(const std::string& name) const {
    return " --tls-cert " + folder.Path(name + ".crt") + " --tls-key " + folder.Path(name + ".key");
  }
  // Returns the flags of the daemon.
  std::vector<std::string> DaemonFlags(bool verifies_clients) const {
    std::vector<std::string> flags = {"--tls-cert=" + cert, "--tls-key=" + key, "--echo"};
    if (verifies_clients) flags.push_back("--tls-client-ca=" + ca_file);
    return flags;
  }

  const TestFolder folder;
  const TestCa ca;
  const std::string cert, key, ca_file;
};

}  // namespace warpline

#endif  // WARPLINE_TESTS_E2E_TLS_FILES_H_
