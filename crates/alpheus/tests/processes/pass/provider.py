"""A small OpenID Connect provider: discovery, keys, and a token endpoint with the password grant.

    provider.py FOLDER PORT CERTIFICATE KEY

It signs with RS256, and after `POST /rotate` with a new key and ES256. It shares no code with what
it tests: openssl makes the keys and the signatures. `forge` in a request for a token breaks one rule.
"""

import base64, hashlib, hmac, json, ssl, subprocess, sys, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs

FOLDER, PORT, CERTIFICATE, KEY = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
ISSUER = f"https://localhost:{PORT}/realm"
CLIENT = "alpheus"
# The directory does not care how a name is spelled, and knows everybody by a number.
PEOPLE = {"ada": ("u-1815", "open sesame"), "bob": ("u-1024", "hunter2")}


def b64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def openssl(*arguments, data=b""):
    return subprocess.run(["openssl", *arguments], input=data, capture_output=True, check=True).stdout


def rsa(name):
    path = f"{FOLDER}/{name}.pem"
    openssl("genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out", path)
    modulus = openssl("rsa", "-in", path, "-noout", "-modulus").decode().strip().split("=")[1]
    jwk = {"kty": "RSA", "kid": name, "use": "sig", "alg": "RS256",
           "n": b64(bytes.fromhex(modulus)), "e": "AQAB"}
    return path, "RS256", jwk


def ec(name):
    path = f"{FOLDER}/{name}.pem"
    openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", path)
    point = openssl("pkey", "-in", path, "-pubout", "-outform", "DER")[-64:]
    jwk = {"kty": "EC", "kid": name, "use": "sig", "alg": "ES256", "crv": "P-256",
           "x": b64(point[:32]), "y": b64(point[32:])}
    return path, "ES256", jwk


def signature(path, algorithm, data):
    made = openssl("dgst", "-sha256", "-sign", path, data=data)
    if algorithm == "RS256":
        return made
    # SEQUENCE { INTEGER r, INTEGER s } to r and s of 32 bytes each.
    parts, at = b"", 2
    for _ in range(2):
        length = made[at + 1]
        parts += made[at + 2:at + 2 + length].lstrip(b"\0").rjust(32, b"\0")
        at += 2 + length
    return parts


def token(subject, forge):
    path, algorithm, jwk = STRANGER if forge == "key" else CURRENT[0]
    now = int(time.time())
    head = {"alg": algorithm, "kid": jwk["kid"], "typ": "JWT"}
    claims = {"iss": ISSUER, "sub": subject, "aud": CLIENT, "iat": now, "exp": now + 3600}
    if forge == "expired":
        claims["exp"] = now - 600
    if forge == "audience":
        claims["aud"] = "another-client"
    if forge == "audiences":
        claims["aud"] = [CLIENT, "another-client"]
    if forge == "issuer":
        claims["iss"] = "https://login.example"
    if forge in ("none", "hmac"):
        head["alg"] = {"none": "none", "hmac": "HS256"}[forge]
    if forge == "key":
        head["kid"] = CURRENT[0][2]["kid"]
    signed = f"{b64(json.dumps(head).encode())}.{b64(json.dumps(claims).encode())}"
    if forge == "none":
        return signed + "."
    if forge == "hmac":
        secret = jwk["n"].encode()
        return f"{signed}.{b64(hmac.new(secret, signed.encode(), hashlib.sha256).digest())}"
    made = b64(signature(path, algorithm, signed.encode()))
    if forge == "subject":
        claims["sub"] = "u-1"
        signed = f"{signed.split('.')[0]}.{b64(json.dumps(claims).encode())}"
    return f"{signed}.{made}"


STRANGER = rsa("stranger")
CURRENT = [rsa("first")]


class Provider(BaseHTTPRequestHandler):
    def answer(self, document, status=200):
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        if self.path == "/realm/.well-known/openid-configuration":
            return self.answer({
                "issuer": ISSUER, "jwks_uri": f"https://localhost:{PORT}/keys",
                "authorization_endpoint": f"{ISSUER}/authorize",
                "token_endpoint": f"{ISSUER}/token", "response_types_supported": ["code"],
                "subject_types_supported": ["public"],
                "id_token_signing_alg_values_supported": ["RS256", "ES256"]})
        if self.path == "/keys":
            return self.answer({"keys": [CURRENT[0][2]]})
        self.answer({"error": "not_found"}, 404)

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        said = {name: values[0] for name, values in parse_qs(body).items()}
        if self.path == "/rotate":
            CURRENT[0] = ec("second")
            return self.answer({})
        person = PEOPLE.get(said.get("username", "").strip().lower())
        if self.path != "/realm/token" or person is None or said.get("password") != person[1]:
            return self.answer({"error": "invalid_grant"}, 400)
        self.answer({"access_token": "unused", "token_type": "Bearer",
                     "id_token": token(person[0], said.get("forge"))})

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", PORT), Provider)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(CERTIFICATE, KEY)
server.socket = context.wrap_socket(server.socket, server_side=True)
print("serving", flush=True)
server.serve_forever()
