"""deploy/ and the Dockerfile agree with each other and with the sources. Needs nothing installed."""

import re
import unittest

import dashboard
from dashboard import ROOT


def read(path):
    return (ROOT / path).read_text()


class DashboardTest(unittest.TestCase):
    def setUp(self):
        self.dashboard = dashboard.load()
        self.panels = list(dashboard.panels(self.dashboard))

    def test_ids_are_unique(self):
        ids = [panel["id"] for panel in self.dashboard["panels"]]
        self.assertEqual(len(ids), len(set(ids)))
        for panel in self.panels:
            refs = [target["refId"] for target in panel["targets"]]
            self.assertEqual(len(refs), len(set(refs)), panel["title"])

    def test_the_datasource_is_a_variable_so_that_it_can_be_imported_anywhere(self):
        chosen, *others = self.dashboard["templating"]["list"]
        self.assertEqual((chosen["name"], chosen["type"], chosen["query"]), ("datasource", "datasource", "prometheus"))
        users = [*self.panels, *(t for p in self.panels for t in p["targets"]), *others,
                 *self.dashboard["annotations"]["list"]]
        for user in users:
            self.assertEqual(user["datasource"], {"type": "prometheus", "uid": "${datasource}"}, user)

    def test_every_panel_has_queries_without_unknown_variables(self):
        self.assertTrue(all(panel["targets"] for panel in self.panels))
        for title, expr, _ in dashboard.queries(self.dashboard):
            self.assertNotIn("$", expr, title)

    def test_every_panel_says_what_it_shows(self):
        self.assertEqual([panel["title"] for panel in self.panels if not panel["description"]], [])

    def test_panels_do_not_overlap(self):
        taken = set()
        for panel in self.dashboard["panels"]:
            at = panel["gridPos"]
            cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
            self.assertLessEqual(at["x"] + at["w"], 24, panel["title"])
            self.assertFalse(cells & taken, panel["title"])
            taken |= cells

    def test_the_daemon_has_every_metric_named(self):
        declared = set(re.findall(r'"((?:warpline|grpc_server)_[a-z_]+)"', read("server/observe/metrics.cc")))
        declared |= set(re.findall(r'"(process_[a-z_]+)"', read("server/observe/process_collector.cc")))
        used = set()
        for text in [dashboard.PATH.read_text(), read("deploy/prometheus/rules.yml")]:
            used |= {dashboard.family(name) for name in dashboard.metrics_in(text)}
        self.assertFalse(used - declared)


def image_command():
    """The image's program and its flags."""
    return re.findall(r'"([^"]+)"', re.search(r"^CMD \[(.*?)\]$", read("Dockerfile"), re.M | re.S)[1])


class AlertsTest(unittest.TestCase):
    def test_each_has_a_severity_a_page_and_a_test(self):
        alerts = re.findall(r"- alert: (\w+)\n(.*?)(?=\n      - alert|\Z)", read("deploy/prometheus/rules.yml"), re.S)
        headings = set(re.findall(r"^## (\w+)$", read("docs/runbook.md"), re.M))
        tested = set(re.findall(r"alertname: (\w+)\n.*?exp_alerts", read("tests/deploy/rules_test.yml"), re.S))
        self.assertEqual({name for name, _ in alerts}, headings)
        self.assertEqual({name for name, _ in alerts}, tested)
        for name, text in alerts:
            self.assertRegex(text, r"labels: \{severity: (critical|warning)\}", name)
            self.assertIn(f"runbook_url: docs/runbook.md#{name.lower()}\n", text + "\n")


class FilesTest(unittest.TestCase):
    def test_grafana_knows_the_scrape_interval(self):
        scrape = re.search(r"scrape_interval: (\S+)", read("deploy/prometheus/prometheus.yml"))
        grafana = re.search(r"timeInterval: (\S+)", read("deploy/grafana/provisioning/datasources/prometheus.yaml"))
        self.assertEqual(scrape[1], grafana[1])

    def test_what_compose_mounts_is_there(self):
        mounts = dict(re.findall(r"- \./(\S+?):(/\S+?):ro", read("deploy/compose.yaml")))
        self.assertTrue(mounts)
        for source in mounts:
            self.assertTrue((ROOT / "deploy" / source).is_dir(), source)
        provider = re.search(r"path: (\S+)", read("deploy/grafana/provisioning/dashboards/warpline.yaml"))
        self.assertEqual(mounts["grafana/dashboards"], provider[1])

    def test_the_edge_finds_the_daemon_and_is_what_is_published(self):
        compose, config = read("deploy/compose.edge.yaml"), read("deploy/haproxy/edge.cfg")
        mounts = dict(re.findall(r"- \./(\S+?):(/\S+?):ro", compose))
        self.assertTrue((ROOT / "deploy" / "haproxy" / "edge.cfg").is_file())
        self.assertIn("haproxy/edge.cfg", mounts)
        self.assertIn(f" crt {mounts['edge/edge.pem']} ", config)
        published = re.findall(r'ports: \["(\d+):(\d+)"\]', compose)
        self.assertEqual(published, [(port, port) for port in re.findall(r"bind :(\d+) ssl", config)])
        proxied = re.search(r"server one (\S+) proto h2 send-proxy-v2", config)[1]
        self.assertEqual(re.search(r" --proxy-listen=(\S+)", compose)[1], proxied)
        self.assertEqual(re.search(r'^# proxy-listen = "(.+)"', read("deploy/systemd/warplined.toml"), re.M)[1], proxied)
        self.assertEqual(re.search(r" --listen=(\S+)", compose)[1],
                         re.search(r'^listen = \["([^"]+)"', read("deploy/systemd/warplined.toml"), re.M)[1])
        # The container with the flags of the image, but for where it listens and whom it takes, and that nobody else is
        # there to whom callers could go while it is drained.
        different = ("--listen=", "--proxy-listen=", "--metrics-listen=", "--tokens=", "--insecure", "--drain-delay=")
        command = re.search(r"command:\n((?: +- \S+\n)+)", compose)[1].split()[1::2]
        self.assertEqual([flag for flag in command if not flag.startswith(different)],
                         [flag for flag in image_command() if not flag.startswith(different)])

    def test_with_tls_nothing_else_is_different(self):
        plain = read("deploy/prometheus/prometheus.yml").splitlines()
        tls = [line for line in read("deploy/prometheus/prometheus.tls.yml").splitlines()
               if line not in ("    scheme: https", "    tls_config:", "      ca_file: /etc/warpline/ca.crt")]
        self.assertEqual(tls[1:], plain)
        image = image_command()
        command = re.search(r"command:\n((?: +- \S+\n)+)", read("deploy/compose.tls.yaml"))[1].split()[1::2]
        self.assertEqual([flag for flag in command if not flag.startswith("--tls-")],
                         [flag for flag in image if flag != "--insecure"])

    def test_compose_waits_for_the_grace_of_the_image(self):
        flags = dict(re.findall(r"--([a-z-]+)=(\d+)s", " ".join(image_command())))
        wait = re.search(r"^ +stop_grace_period: (\d+)s$", read("deploy/compose.yaml"), re.M)
        self.assertGreater(int(wait[1]), int(flags["grace"]))
        self.assertGreater(int(flags["grace"]), int(flags["drain-delay"]))

    def test_the_health_check_of_haproxy_is_a_call_of_grpc(self):
        def frame(kind, flags, stream, payload):
            return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload

        def text(value):
            return bytes([len(value)]) + value

        # POST and http by their numbers in HPACK's table, :path, :authority and content-type by those of their names.
        headers = (b"\x83\x86\x04" + text(b"/grpc.health.v1.Health/Check") + b"\x01" + text(b"warpline") +
                   b"\x0f\x10" + text(b"application/grpc") + b"\x00" + text(b"te") + text(b"trailers"))
        settings, end_headers, end_stream, message = 4, 4, 1, bytes(5)
        want = [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", frame(settings, 0, 0, b""), frame(1, end_headers, 1, headers),
                frame(0, end_stream, 1, message)]
        sent = re.findall(r"^ +tcp-check send-binary (\w+)$", read("deploy/haproxy/haproxy.cfg"), re.M)
        self.assertEqual([bytes.fromhex(part) for part in sent], want)

    def test_the_image_is_built_with_the_packages_of_quickstart(self):
        listed = re.search(r"^packages=\((.*?)\)$", read("quickstart"), re.M | re.S)[1]
        wanted = set(re.sub(r"#.*", "", listed).split())
        # The demonstration and the tests need these, and an image has no manual pages.
        wanted -= {"python3", "python3-numpy", "curl", "libgtest-dev", "libgmock-dev", "help2man"}
        stage = read("Dockerfile").split("AS build")[1]
        installed = re.search(r"--no-install-recommends(.*?)&&", stage, re.S)[1]
        self.assertEqual(set(installed.replace("\\", " ").split()), wanted)

    def test_the_image_is_built_from_all_that_a_package_has(self):
        packaged = set(re.findall(r"\{PROJECT_SOURCE_DIR\}/(deploy/\w+)", read("cmake/WarplinePackage.cmake")))
        self.assertIn("deploy/systemd", packaged)
        self.assertEqual(packaged, {line[1:] for line in read(".dockerignore").splitlines()
                                    if line.startswith("!deploy/")})


if __name__ == "__main__":
    unittest.main()
