"""What a dashboard's panels show, asked of a Prometheus as Grafana asks it. It is written as JSON for picture/page.tsx."""

import dashboard
from prometheus import ask


def rate_interval(scrape_seconds):
    """$__rate_interval. Grafana makes it of the scrape interval and of the step between a panel's points, which is the
    scrape interval too as long as the narrowest panel has a pixel for each scrape. With 5 s these are 15 minutes."""
    return f"{4 * scrape_seconds}s"


def results(url, expr, begin, end, scrape_seconds):
    """The series of a query. All panels ask for a range: those of one value show its course behind it, and take the
    last."""
    query = dashboard.replaced(expr, rate_interval(scrape_seconds))
    return ask(url, "query_range", query=query, start=begin, end=end, step=scrape_seconds)["result"]


def collect(url, begin, end, scrape_seconds):
    """The dashboard, and for each of its panels the answers to its queries, by refId."""
    begin, end = (int(time // scrape_seconds * scrape_seconds) for time in (begin, end))
    board = dashboard.load()
    answers = {panel["id"]: {target["refId"]: results(url, target["expr"], begin, end, scrape_seconds)
                             for target in panel["targets"]}
               for panel in dashboard.panels(board)}
    annotations = [{"name": annotation["name"], "color": annotation["iconColor"],
                    "result": results(url, annotation["expr"], begin, end, scrape_seconds)}
                   for annotation in board["annotations"]["list"] if annotation["enable"]]
    return {"dashboard": board, "answers": answers, "annotations": annotations, "begin": begin, "end": end,
            "step": scrape_seconds}
