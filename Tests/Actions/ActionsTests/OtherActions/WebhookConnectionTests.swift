import ActionAPI
import Foundation
import Glibc
import JSON
import PluginProtocol
import Rules
import Testing
import TestKit

/// Network errors, redirects and certificates that `webhook` meets.
struct WebhookConnectionTests {
    // MARK: Network errors

    @Test func `network errors are retried`() throws {
        let server = try WebhookServer()
        let directory = TemporaryDirectory()
        let rule = WebhookRule.make(directory)
        let dropped = rule.run("a b.txt", ["url": server.url("/drop")])
        #expect(dropped.result == .retry)
        #expect(dropped.code == "network")
        let nobody = rule.run("a b.txt", ["url": "http://127.0.0.1:1/secret/path"])
        #expect(nobody.result == .retry)
        #expect(nobody.message.hasPrefix("http://127.0.0.1:1: "))
        #expect(!nobody.message.contains("secret"))
        let unknown = rule.run("a b.txt", ["url": "http://nothing.invalid/"])
        #expect(unknown.result == .retry)
        #expect(unknown.message.hasPrefix("http://nothing.invalid: "))
    }

    @Test func `a slow server is abandoned at the timeout and at a stop`() throws {
        let server = try WebhookServer()
        let directory = TemporaryDirectory()
        var rule = WebhookRule.make(directory)
        rule.timeout = .milliseconds(200)
        let late = rule.run("a b.txt", ["url": server.url("/slow")])
        #expect(late.code == "timed-out")
        rule.timeout = .seconds(1000)
        let slow = rule
        let stop = rule.stop
        let url = server.url("/slow")
        let outcome = Locked<Outcome?>(nil)
        onThreads(2) { thread in
            if thread == 0 {
                let ended = slow.run("a b.txt", ["url": url])
                outcome.change { $0 = ended }
            } else {
                // The request is waiting in the server by now, or will be soon.
                Deadline.pause(.milliseconds(100))
                stop.raise()
            }
        }
        #expect(outcome.value?.isInterrupted == true)
    }

    // MARK: Redirects

    @Test(arguments: [301, 302, 307, 308])
    func `a redirect on the same host gets the same request`(status: Int) throws {
        let server = try WebhookServer()
        let directory = TemporaryDirectory()
        let rule = WebhookRule.make(directory)
        let with: JSONValue = [
            "url": server.url("/?status=\(status)&to=/there?status=202"), "secret": "sign-key", "signature": "github",
            "headers": ["Authorization": "Bearer abc"],
        ]
        let outcome = rule.run("a b.txt", with)
        #expect(outcome.values["status"] == 202)
        let requests = server.requests
        try #require(requests.count == 2)
        #expect(requests[1].method == "POST")
        #expect(requests[1].path == "/there?status=202")
        #expect(requests[1].body == requests[0].body)
        #expect(requests[1].headers == requests[0].headers)
    }

    @Test func `nothing is sent to another host or another port`() throws {
        let server = try WebhookServer()
        let other = try WebhookServer()
        let directory = TemporaryDirectory()
        let rule = WebhookRule.make(directory)
        for target in [
            "http://127.0.0.1:\(other.port)/", "http://localhost:\(server.port)/", "http://127.0.0.2/",
            "https://127.0.0.1:\(server.port)/", "file:///etc/passwd", "//[::1]/",
        ] {
            let encoded = target.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
            let with: JSONValue = ["url": server.url("/?status=307&to=\(encoded)"), "secret": "sign-key"]
            let outcome = rule.run("a b.txt", with)
            #expect(outcome.result == .failed, "\(target)")
            #expect(outcome.code == "redirect", "\(target): \(outcome.message)")
            #expect(outcome.message.contains("which is not followed"))
        }
        #expect(other.requests.isEmpty)
        #expect(server.requests.count == 6)
    }

    @Test func `an endless chain of redirects is abandoned`() throws {
        let server = try WebhookServer()
        let directory = TemporaryDirectory()
        let outcome = WebhookRule.make(directory).run("a b.txt", ["url": server.url("/circle")])
        #expect(outcome.result == .failed)
        #expect(outcome.message.hasSuffix("redirects more than 5 times"))
        #expect(server.requests.count == 6)
    }

    // MARK: TLS

    @Test func `over TLS the certificate must be trusted`() throws {
        let server = try WebhookServer(isSecure: true)
        let directory = TemporaryDirectory()
        let rule = WebhookRule.make(directory)
        let unknown = rule.run("a b.txt", ["url": server.url("/")])
        #expect(unknown.result == .failed)
        #expect(unknown.code == "tls")
        #expect(unknown.message.contains("is not trusted"))
        #expect(unknown.message.contains("'ca_file'"))
        #expect(server.requests.isEmpty)
        let authority = JSONValue.string("\(server.directory.path)/ca.pem")
        let known = rule.run("a b.txt", ["url": server.url("/"), "ca_file": authority])
        #expect(known.result == .succeeded, "\(known.message)")
        // The certificate is valid for the address, not for this name.
        let other = rule.run(
            "a b.txt", ["url": .string("https://localhost:\(server.port)/"), "ca_file": authority])
        #expect(other.code == "tls", "\(other.message)")
        let missing = rule.run("a b.txt", ["url": server.url("/"), "ca_file": "missing.pem"])
        #expect(missing.result == .failed)
        #expect(missing.code == "bad-request")
        let downgraded = rule.run(
            "a b.txt",
            ["url": server.url("/?status=307&to=http%3A%2F%2F127.0.0.1%3A\(server.port)%2F"), "ca_file": authority])
        #expect(downgraded.code == "redirect")
    }

    @Test(.enabled(if: geteuid() == 0, "only root refuses"))
    func `as root, certificate authorities that others can change are not trusted`() throws {
        let directory = TemporaryDirectory()
        let file = try directory.write("ca.pem", "", mode: 0o646)
        let outcome = WebhookRule.make(directory).run(
            "a b.txt", ["url": "https://127.0.0.1:1/", "ca_file": .string("\(file)")])
        #expect(outcome.result == .failed)
        #expect(outcome.message == "'ca_file': '\(file)' can be changed by others than root (mode 0646)")
    }
}
