import CLibMicroHTTPD

// What is answered, as long as there is room for it.
extension ServerLoop {
    /// Most bytes that are held for all clients together: slow ones could ask for more and more.
    private static let mostHeld = 48 << 20

    static func addSecurity(_ pointer: OpaquePointer) {
        for (name, value) in APIResponse.securityHeaders { chm_add_header(pointer, name, value) }
    }

    func send(_ response: APIResponse, to pointer: OpaquePointer) {
        guard exchanges[pointer]?.isAnswered != true else { return }
        let held = exchanges.values.reduce(0) { $0 + $1.held }
        guard response.body.count < 1 << 16 || held + response.body.count <= Self.mostHeld else {
            send(
                APIError(503, "too much is on its way to others", help: "ask again in a moment").response, to: pointer)
            return
        }
        exchanges[pointer]?.isAnswered = true
        exchanges[pointer]?.held = response.body.count
        for (name, value) in response.headers { chm_add_header(pointer, name, value) }
        Self.addSecurity(pointer)
        response.body.withUnsafeBytes {
            chm_answer(pointer, UInt32(response.status), $0.baseAddress, $0.count)
        }
    }
}
