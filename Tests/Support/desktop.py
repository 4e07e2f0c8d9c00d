"""A desktop notification service on the bus of DBUS_SESSION_BUS_ADDRESS. Appends a line per notification to a file.

    python3 desktop.py FILE
"""

import sys

import dbus
import dbus.service
from dbus.mainloop.glib import DBusGMainLoop
from gi.repository import GLib

NAME = "org.freedesktop.Notifications"


class Desktop(dbus.service.Object):

    @dbus.service.method(NAME, in_signature="susssasa{sv}i", out_signature="u")
    def Notify(self, app, replaces, icon, summary, body, actions, hints, timeout):
        with open(sys.argv[1], "a") as file:
            file.write("|".join([app, icon, summary, body, str(int(hints["urgency"]))]) + "\n")
        return 1

    @dbus.service.method(NAME, out_signature="ssss")
    def GetServerInformation(self):
        return "test", "test", "1", "1.2"

    @dbus.service.method(NAME, out_signature="as")
    def GetCapabilities(self):
        return ["body"]


DBusGMainLoop(set_as_default=True)
bus = dbus.SessionBus()
name = dbus.service.BusName(NAME, bus)
desktop = Desktop(bus, "/org/freedesktop/Notifications")
print("ready", bus.get_name_owner(NAME), flush=True)
GLib.MainLoop().run()
