"""A content proxy: fetches pages of a few sites for everyone who passes the
gateway. The sites see the proxy's address. The proxy sees no reader's name."""

import sys
import urllib.parse
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SITES = sys.argv[2:]


class Proxy(BaseHTTPRequestHandler):
    def do_GET(self):
        query = urllib.parse.urlsplit(self.path).query
        url = urllib.parse.parse_qs(query).get("url", [""])[0]
        if not any(url == site or url.startswith(site + "/") for site in SITES):
            return self.send_error(403, "not one of the sites")
        with urllib.request.urlopen(url, timeout=10) as page:
            body, kind = page.read(1 << 24), page.headers.get("Content-Type", "text/html")
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Proxy).serve_forever()
