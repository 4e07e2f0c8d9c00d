import Foundation
import Glibc
import JSON
import System
import Testing
import TestKit

/// A server that responds as the path of the request specifies, and records the requests.
final class WebhookServer {
    let directory: TemporaryDirectory
    private let program: RunningProgram
    let port: Int
    let scheme: String

    /// A request as it was received.
    struct Request {
        var method: String
        var path: String
        /// The headers, with lower-case names.
        var headers: [String: String]
        var body: [UInt8]

        var json: JSONValue? { JSONValue(json: body) }
    }

    /// Starts a server.
    ///
    /// - Parameter isSecure: Whether the server uses TLS, with a certificate of its own authority, `ca.pem`.
    /// - Throws: An error if the server does not start.
    init(isSecure: Bool = false) throws {
        directory = TemporaryDirectory()
        scheme = isSecure ? "https" : "http"
        try directory.write("server.py", Self.script)
        if isSecure {
            let made = call("/bin/sh", ["-e", "-c", Self.certificates], in: directory.path)
            try #require(made.status == 0, "\(made.error)")
        }
        program = RunningProgram(
            "/usr/bin/python3", ["server.py", isSecure ? "tls" : "plain"], in: directory.path,
            output: directory.path.appending("server"))
        let started = Deadline.poll { [program] in program.lines.first ?? (program.exitStatus() != nil ? "" : nil) }
        let line = try #require(started)
        port = try #require(Int(line), "\(program.error)")
    }

    func url(_ path: String) -> JSONValue { .string("\(scheme)://127.0.0.1:\(port)\(path)") }

    /// The requests received so far.
    var requests: [Request] {
        (directory.text(of: "requests") ?? "").split(separator: "\n").compactMap { line in
            guard let object = JSONValue(json: line.utf8)?.object,
                let body = object["body"]?.string.flatMap({ Data(base64Encoded: $0) })
            else { return nil }
            return Request(
                method: object["method"]?.string ?? "", path: object["path"]?.string ?? "",
                headers: object["headers"]?.object?.compactMapValues(\.string) ?? [:], body: Array(body))
        }
    }

    private static let certificates = """
        openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout ca.key -out ca.pem \
            -subj /CN=test-authority -days 2 2>log
        openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout server.key -out server.csr \
            -subj /CN=localhost 2>>log
        echo 'subjectAltName=IP:127.0.0.1' >names
        openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out server.pem -days 2 \
            -extfile names 2>>log
        """

    private static let script = #"""
        import base64, email.utils, http.server, json, ssl, sys, time, urllib.parse

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                entry = {"method": self.command, "path": self.path, "body": base64.b64encode(body).decode(),
                         "headers": {name.lower(): value for name, value in self.headers.items()}}
                with open("requests", "a") as file:
                    file.write(json.dumps(entry) + "\n")
                path, _, query = self.path.partition("?")
                query = {name: values[0] for name, values in urllib.parse.parse_qs(query).items()}
                word = path.split("/")[1]
                if word == "slow":
                    time.sleep(1000)
                if word == "drop":
                    self.close_connection = True
                    return
                status = int(query.get("status", 200))
                content = base64.b64decode(query.get("content", ""))
                if word == "express":
                    content = ("Cannot POST " + urllib.parse.unquote(self.path)).encode()
                if word == "circle":
                    status, query["to"] = 308, "/circle"
                if word == "echo":
                    content = "".join(f"{name}: {value}\n" for name, value in self.headers.items()).encode()
                self.send_response(status)
                if "after" in query:
                    self.send_header("Retry-After", query["after"])
                if "date" in query:
                    self.send_header("Retry-After", email.utils.formatdate(time.time() + int(query["date"]), usegmt=True))
                if "to" in query:
                    self.send_header("Location", query["to"])
                if word == "headers":
                    self.flush_headers()
                    try:
                        while True:
                            self.wfile.write(b"X-Header: " + b"x" * 1024 + b"\r\n")
                    except OSError:
                        return
                if word == "endless":
                    self.end_headers()
                    try:
                        while True:
                            self.wfile.write(b"x" * 65536)
                    except OSError:
                        return
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_POST = do_PUT = do_PATCH = do_GET = answer

            def log_message(self, *words):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        if sys.argv[1] == "tls":
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain("server.pem", "server.key")
            server.socket = context.wrap_socket(server.socket, server_side=True)
        print(server.server_port, flush=True)
        server.serve_forever()
        """#
}
