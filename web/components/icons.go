package components

// Icon names a drawing on a grid of 24 by 24, stroked in the text's colour.
type Icon string

// The icons.
const (
	IconNone       Icon = ""
	IconOverview   Icon = "overview"
	IconCatalog    Icon = "catalog"
	IconGPU        Icon = "gpu"
	IconVM         Icon = "vm"
	IconActivity   Icon = "activity"
	IconFleet      Icon = "fleet"
	IconSearch     Icon = "search"
	IconDown       Icon = "down"
	IconRight      Icon = "right"
	IconUp         Icon = "up"
	IconCheck      Icon = "check"
	IconClose      Icon = "close"
	IconPlus       Icon = "plus"
	IconMinus      Icon = "minus"
	IconCopy       Icon = "copy"
	IconClock      Icon = "clock"
	IconLock       Icon = "lock"
	IconAttaching  Icon = "attaching"
	IconDetaching  Icon = "detaching"
	IconPower      Icon = "power"
	IconPlay       Icon = "play"
	IconStop       Icon = "stop"
	IconRestart    Icon = "restart"
	IconWarning    Icon = "warning"
	IconInfo       Icon = "info"
	IconBan        Icon = "ban"
	IconSun        Icon = "sun"
	IconMoon       Icon = "moon"
	IconSystem     Icon = "system"
	IconLanguage   Icon = "language"
	IconUser       Icon = "user"
	IconSignOut    Icon = "sign-out"
	IconMenu       Icon = "menu"
	IconPencil     Icon = "pencil"
	IconTrash      Icon = "trash"
	IconLink       Icon = "link"
	IconUnlink     Icon = "unlink"
	IconFilter     Icon = "filter"
	IconPlace      Icon = "place"
	IconCompare    Icon = "compare"
	IconResize     Icon = "resize"
	IconMemory     Icon = "memory"
	IconChip       Icon = "chip"
	IconKey        Icon = "key"
	IconBook       Icon = "book"
	IconUndo       Icon = "undo"
	IconLayers     Icon = "layers"
	IconArrowRight Icon = "arrow-right"
	IconDot        Icon = "dot"
	IconHost       Icon = "host"
	IconGauge      Icon = "gauge"
	IconDownload   Icon = "download"
)

var drawings = map[Icon]string{
	IconOverview:   `<rect x="3.5" y="3.5" width="7" height="9" rx="1.5"/><rect x="13.5" y="3.5" width="7" height="5" rx="1.5"/><rect x="13.5" y="11.5" width="7" height="9" rx="1.5"/><rect x="3.5" y="15.5" width="7" height="5" rx="1.5"/>`,
	IconCatalog:    `<path d="M12 6.5v13M12 6.5C10.3 5 7.6 4.5 3.5 4.5v13c4.1 0 6.8.5 8.5 2 1.7-1.5 4.4-2 8.5-2v-13c-4.1 0-6.8.5-8.5 2Z"/>`,
	IconGPU:        `<rect x="3" y="6" width="18" height="11" rx="2"/><circle cx="9" cy="11.5" r="2.5"/><circle cx="16" cy="11.5" r="1.8"/><path d="M6 17v3M10 17v3M14 17v3"/>`,
	IconVM:         `<rect x="3" y="4.5" width="18" height="12" rx="2"/><path d="M9 20h6M12 16.500V20"/>`,
	IconActivity:   `<path d="M3 12h4l3-7.5 4 15 3-7.500h4"/>`,
	IconFleet:      `<rect x="3.5" y="4" width="17" height="6.5" rx="1.5"/><rect x="3.5" y="13.5" width="17" height="6.5" rx="1.5"/><path d="M7 7.250h.01M7 16.750h.01M11 7.250h6M11 16.750h6"/>`,
	IconSearch:     `<circle cx="11" cy="11" r="6.5"/><path d="m16 16 4.5 4.5"/>`,
	IconDown:       `<path d="m6.5 9.5 5.5 5.5 5.5-5.5"/>`,
	IconRight:      `<path d="m9.5 6.5 5.5 5.5-5.5 5.5"/>`,
	IconUp:         `<path d="m6.5 14.5 5.5-5.5 5.5 5.5"/>`,
	IconCheck:      `<path d="m5 12.5 4.5 4.500L19 7.5"/>`,
	IconClose:      `<path d="m6.5 6.5 11 11M17.5 6.500l-11 11"/>`,
	IconPlus:       `<path d="M12 5.500v13M5.5 12h13"/>`,
	IconMinus:      `<path d="M5.5 12h13"/>`,
	IconCopy:       `<rect x="8.5" y="8.5" width="11.5" height="11.5" rx="2"/><path d="M15.5 8.500V6a2 2 0 0 0-2-2H6a2 2 0 0 0-2 2v7.500a2 2 0 0 0 2 2h2.5"/>`,
	IconClock:      `<circle cx="12" cy="12" r="8.5"/><path d="M12 7v5.200l3.3 2"/>`,
	IconLock:       `<rect x="5" y="10.5" width="14" height="9.5" rx="2"/><path d="M8 10.500V8a4 4 0 0 1 8 0v2.5"/>`,
	IconAttaching:  `<path d="M20 5v14M4 12h11.500M11 7.500l4.5 4.5-4.5 4.5"/>`,
	IconDetaching:  `<path d="M20 5v14M15.5 12H4M8.5 7.5 4 12l4.5 4.5"/>`,
	IconPower:      `<path d="M12 3.500V12M7 6.500a7.5 7.5 0 1 0 10 0"/>`,
	IconPlay:       `<path d="M7.5 5.200v13.600c0 .7.7 1.1 1.3.700l10-6.800c.5-.35.5-1.05 0-1.400l-10-6.800c-.6-.4-1.3 0-1.3.700Z"/>`,
	IconStop:       `<rect x="6" y="6" width="12" height="12" rx="2"/>`,
	IconRestart:    `<path d="M20 5v5h-5"/><path d="M19.5 10A8 8 0 1 0 20 13.5"/>`,
	IconWarning:    `<path d="M12 4 2.8 19.500h18.400L12 4Z"/><path d="M12 10v4.500M12 17.200h.01"/>`,
	IconInfo:       `<circle cx="12" cy="12" r="8.5"/><path d="M12 11v5.500M12 7.800h.01"/>`,
	IconBan:        `<circle cx="12" cy="12" r="8.5"/><path d="m6 6 12 12"/>`,
	IconSun:        `<circle cx="12" cy="12" r="4"/><path d="M12 2.500v2M12 19.500v2M2.5 12h2M19.5 12h2M5.3 5.300l1.4 1.400M17.3 17.300l1.4 1.400M18.7 5.300l-1.4 1.400M6.7 17.300l-1.4 1.4"/>`,
	IconMoon:       `<path d="M20 14.500A8.5 8.5 0 0 1 9.5 4a8.5 8.5 0 1 0 10.5 10.500Z"/>`,
	IconSystem:     `<circle cx="12" cy="12" r="8.5"/><path d="M12 3.500v17M12 8.500l6-2.500M12 13l8-3.300M12 17.500l7.3-3"/>`,
	IconLanguage:   `<circle cx="12" cy="12" r="8.5"/><path d="M3.5 12h17M12 3.500c2.4 2.5 3.5 5.3 3.5 8.500s-1.1 6-3.5 8.500c-2.4-2.5-3.5-5.3-3.5-8.500s1.1-6 3.5-8.500Z"/>`,
	IconUser:       `<circle cx="12" cy="8" r="4"/><path d="M4.5 20.500c.8-4 3.7-6 7.5-6s6.7 2 7.5 6"/>`,
	IconSignOut:    `<path d="M14 4H7a2 2 0 0 0-2 2v12a2 2 0 0 0 2 2h7M10.5 12H21M17 8l4 4-4 4"/>`,
	IconMenu:       `<path d="M4 7h16M4 12h16M4 17h16"/>`,
	IconPencil:     `<path d="m4.5 19.5.9-4L16 4.900a1.7 1.7 0 0 1 2.4 0l.7.700a1.7 1.7 0 0 1 0 2.400L8.5 18.600l-4 .900ZM14 7l3 3"/>`,
	IconTrash:      `<path d="M4.5 6.500h15M9.5 6.500V4h5v2.500M6.5 6.500l.8 12a1.6 1.6 0 0 0 1.6 1.500h6.200a1.6 1.6 0 0 0 1.6-1.500l.8-12M10 10.500v6M14 10.500v6"/>`,
	IconLink:       `<path d="M10 14a4 4 0 0 0 5.7 0l3.1-3.100a4 4 0 1 0-5.7-5.700l-1 1M14 10a4 4 0 0 0-5.7 0l-3.1 3.100a4 4 0 1 0 5.7 5.700l1-1"/>`,
	IconUnlink:     `<path d="m16.5 13.2 2.3-2.300a4 4 0 1 0-5.7-5.700l-2.3 2.300M7.5 10.800l-2.3 2.300a4 4 0 1 0 5.7 5.700l2.3-2.300M4 4l16 16"/>`,
	IconFilter:     `<path d="M4 6h16M7 12h10M10 18h4"/>`,
	IconPlace:      `<path d="M12 21c4.3-4.4 6.5-8 6.5-11a6.5 6.5 0 0 0-13 0c0 3 2.2 6.6 6.5 11Z"/><circle cx="12" cy="10" r="2.3"/>`,
	IconCompare:    `<path d="M8 4v16M16 4v16M4.5 8H8M4.5 16H8M16 8h3.500M16 16h3.5"/>`,
	IconResize:     `<path d="M14.5 4H20v5.500M20 4l-7 7M9.5 20H4v-5.500M4 20l7-7"/>`,
	IconMemory:     `<rect x="3" y="7" width="18" height="9" rx="1.5"/><path d="M7 16v3M12 16v3M17 16v3M7.5 10v3M12 10v3M16.5 10v3"/>`,
	IconChip:       `<rect x="6.5" y="6.5" width="11" height="11" rx="2"/><path d="M9.5 3.500v3M14.5 3.500v3M9.5 17.500v3M14.5 17.500v3M3.5 9.500h3M3.5 14.500h3M17.5 9.500h3M17.5 14.500h3"/>`,
	IconKey:        `<circle cx="8" cy="15.5" r="4"/><path d="m11 12.5 8.5-8.500M16 7.500l2.5 2.5"/>`,
	IconBook:       `<path d="M5.5 4.500h11a2 2 0 0 1 2 2v13h-11a2 2 0 0 1-2-2v-13ZM5.5 17.500a2 2 0 0 1 2-2h11M9 8.500h6"/>`,
	IconUndo:       `<path d="M8.5 5.5 4 10l4.5 4.500M4 10h10a5.5 5.5 0 0 1 0 11h-3"/>`,
	IconLayers:     `<path d="m12 3.5 8.5 4.700L12 13 3.5 8.2 12 3.500ZM3.5 12.5 12 17.200l8.5-4.700M3.5 16.700l8.5 4.8 8.5-4.8"/>`,
	IconArrowRight: `<path d="M4.5 12h15M14 6.500l5.5 5.5-5.5 5.5"/>`,
	IconHost:       `<rect x="4" y="3.5" width="16" height="17" rx="2"/><path d="M4 9.200h16M4 14.800h16M7.5 6.400h.01M7.5 12h.01M7.5 17.600h.01M11 6.400h5M11 12h5M11 17.600h5"/>`,
	IconGauge:      `<path d="M4.5 18a8.500 8.500 0 1 1 15 0M12 14.500l4-5"/>`,
	IconDownload:   `<path d="M12 4v11M7.500 11l4.500 4.500 4.500-4.500M5 19.500h14"/>`,
	IconDot:        `<circle cx="12" cy="12" r="4"/>`,
}
