import Coffer
@_spi(Tool) @testable import CofferMaintenance
import Testing
