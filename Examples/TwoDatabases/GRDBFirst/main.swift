import GRDB
import Coffer
import TwoDatabases

try keepTwoDatabases()
