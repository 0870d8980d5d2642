import Coffer
import GRDB
import TwoDatabases

try keepTwoDatabases()
