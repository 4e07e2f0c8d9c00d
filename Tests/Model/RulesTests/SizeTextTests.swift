import Rules
import Testing

struct SizeTextTests {
    @Test(arguments: [
        ("0", 0), ("512", 512), ("512 B", 512), ("64 KB", 64_000), ("64kb", 64_000), ("64 KiB", 65_536),
        ("1.5 MiB", 1_572_864), ("2 GB", 2_000_000_000), ("1GiB", 1_073_741_824),
    ])
    func `a size is a number and a unit`(text: String, bytes: Int) throws {
        #expect(try SizeText.parse(text) == bytes)
    }

    @Test(arguments: [
        "", "KB", "-1 KB", ".5 KB", "5. KB", "1..5 KB", "٣ KB", "1 000", "1 KB 2", "1e3", "64 KX", "1e9 GB",
    ])
    func `an invalid size is refused with help`(text: String) {
        let problem = #expect(throws: Problem.self) { try SizeText.parse(text) }
        #expect(problem?.help == "a size is a number and a unit: 512 B, 64 KB, 1.5 MiB")
    }

    @Test func `a size that no file can have is refused`() {
        #expect(throws: Problem.self) { try SizeText.parse("99999999999999999999 GB") }
    }
}
