import System
import Testing

struct MountTableTests {
    @Test func `mount points are parsed including their spaces`() {
        let text = """
            22 28 0:21 / /proc rw,nosuid - proc proc rw
            40 28 0:40 / /mnt/a\\040b\\134c rw shared:2 - tmpfs none rw

            """
        let points = Set(MountTable.parse(Array(text.utf8)).map(\.point))
        #expect(points == ["/proc", "/mnt/a b\\c"])
    }
}
