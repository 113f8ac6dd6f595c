//! Names of the link types that capture files are marked with.

use super::packet::LinkType;

impl LinkType {
    /// BSD loopback: a 4-byte address family in the byte order of the recording machine.
    pub const NULL: Self = Self(0);
    /// Ethernet II and IEEE 802.3.
    pub const ETHERNET: Self = Self(1);
    /// IEEE 802.5 token ring.
    pub const TOKEN_RING: Self = Self(6);
    /// SLIP with a pseudo-header.
    pub const SLIP: Self = Self(8);
    /// PPP, with or without address and control bytes.
    pub const PPP: Self = Self(9);
    /// FDDI.
    pub const FDDI: Self = Self(10);
    /// PPP in HDLC-like framing.
    pub const PPP_HDLC: Self = Self(50);
    /// PPP over Ethernet, from the header of its session on.
    pub const PPP_ETHER: Self = Self(51);
    /// LLC/SNAP encapsulated ATM.
    pub const ATM_RFC1483: Self = Self(100);
    /// A bare IPv4 or IPv6 packet.
    pub const RAW_IP: Self = Self(101);
    /// Cisco HDLC.
    pub const CISCO_HDLC: Self = Self(104);
    /// IEEE 802.11 without a capture header.
    pub const IEEE802_11: Self = Self(105);
    /// Frame relay.
    pub const FRAME_RELAY: Self = Self(107);
    /// OpenBSD loopback: a 4-byte address family in network byte order.
    pub const LOOP: Self = Self(108);
    /// Linux "cooked" capture, version 1.
    pub const LINUX_SLL: Self = Self(113);
    /// ARCNET as Linux captures it.
    pub const ARCNET_LINUX: Self = Self(129);
    /// IEEE 802.11 after a Prism header.
    pub const IEEE802_11_PRISM: Self = Self(119);
    /// IEEE 802.11 after a radiotap header.
    pub const IEEE802_11_RADIOTAP: Self = Self(127);
    /// IEEE 802.11 after an AVS header.
    pub const IEEE802_11_AVS: Self = Self(163);
    /// PPP with a direction byte in place of the address byte, as pppd writes it.
    pub const PPP_PPPD: Self = Self(166);
    /// Per-packet information header, which names the link type of what follows.
    pub const PPI: Self = Self(192);
    /// Endace ERF records.
    pub const ERF: Self = Self(197);
    /// PPP after a direction byte.
    pub const PPP_WITH_DIR: Self = Self(204);
    /// Cisco HDLC after a direction byte.
    pub const CISCO_HDLC_WITH_DIR: Self = Self(205);
    /// MPLS, from the label stack on.
    pub const MPLS: Self = Self(219);
    /// A bare IPv4 packet.
    pub const IPV4: Self = Self(228);
    /// A bare IPv6 packet.
    pub const IPV6: Self = Self(229);
    /// Linux netfilter log.
    pub const NFLOG: Self = Self(239);
    /// IP over InfiniBand.
    pub const IPOIB: Self = Self(242);
    /// InfiniBand.
    pub const INFINIBAND: Self = Self(247);
    /// Linux "cooked" capture, version 2.
    pub const LINUX_SLL2: Self = Self(276);

    /// Name of the `LINKTYPE_` registry in lower case (`ethernet`, `linux_sll`, …), if it has one.
    pub fn name(self) -> Option<&'static str> {
        let index = NAMES
            .binary_search_by_key(&self.0, |&(number, _)| number)
            .ok()?;
        Some(NAMES[index].1)
    }
}

/// The number that the registry has for what some systems write with numbers of their own, of which
/// those that are read here as Wireshark reads them.
pub(super) fn canonical(number: u16) -> LinkType {
    LinkType(match number {
        11 => 100,
        12 | 14 => 101,
        13 => 109,
        16 | 18 => 19,
        other => other,
    })
}

/// Sorted by number.
const NAMES: &[(u16, &str)] = &[
    (0, "null"),
    (1, "ethernet"),
    (2, "exp_ethernet"),
    (3, "ax25"),
    (4, "pronet"),
    (5, "chaos"),
    (6, "ieee802_5"),
    (7, "arcnet_bsd"),
    (8, "slip"),
    (9, "ppp"),
    (10, "fddi"),
    (19, "atm_clip"),
    (50, "ppp_hdlc"),
    (51, "ppp_ether"),
    (99, "symantec_firewall"),
    (100, "atm_rfc1483"),
    (101, "raw_ip"),
    (102, "slip_bsdos"),
    (103, "ppp_bsdos"),
    (104, "c_hdlc"),
    (105, "ieee802_11"),
    (106, "atm_clip"),
    (107, "frelay"),
    (108, "loop"),
    (109, "enc"),
    (110, "lane8023"),
    (111, "hippi"),
    (112, "hdlc"),
    (113, "linux_sll"),
    (114, "ltalk"),
    (115, "econet"),
    (116, "ipfilter"),
    (117, "pflog"),
    (118, "cisco_ios"),
    (119, "ieee802_11_prism"),
    (120, "ieee802_11_aironet"),
    (121, "hhdlc"),
    (122, "ip_over_fc"),
    (123, "sunatm"),
    (124, "rio"),
    (125, "pci_exp"),
    (126, "aurora"),
    (127, "ieee802_11_radiotap"),
    (128, "tzsp"),
    (129, "arcnet_linux"),
    (130, "juniper_mlppp"),
    (131, "juniper_mlfr"),
    (132, "juniper_es"),
    (133, "juniper_ggsn"),
    (134, "juniper_mfr"),
    (135, "juniper_atm2"),
    (136, "juniper_services"),
    (137, "juniper_atm1"),
    (138, "apple_ip_over_ieee1394"),
    (139, "mtp2_with_phdr"),
    (140, "mtp2"),
    (141, "mtp3"),
    (142, "sccp"),
    (143, "docsis"),
    (144, "linux_irda"),
    (145, "ibm_sp"),
    (146, "ibm_sn"),
    (147, "user0"),
    (148, "user1"),
    (149, "user2"),
    (150, "user3"),
    (151, "user4"),
    (152, "user5"),
    (153, "user6"),
    (154, "user7"),
    (155, "user8"),
    (156, "user9"),
    (157, "user10"),
    (158, "user11"),
    (159, "user12"),
    (160, "user13"),
    (161, "user14"),
    (162, "user15"),
    (163, "ieee802_11_avs"),
    (164, "juniper_monitor"),
    (165, "bacnet_ms_tp"),
    (166, "ppp_pppd"),
    (167, "juniper_pppoe"),
    (168, "juniper_pppoe_atm"),
    (169, "gprs_llc"),
    (170, "gpf_t"),
    (171, "gpf_f"),
    (172, "gcom_t1e1"),
    (173, "gcom_serial"),
    (174, "juniper_pic_peer"),
    (175, "erf_eth"),
    (176, "erf_pos"),
    (177, "linux_lapd"),
    (178, "juniper_ether"),
    (179, "juniper_ppp"),
    (180, "juniper_frelay"),
    (181, "juniper_chdlc"),
    (182, "mfr"),
    (183, "juniper_vp"),
    (184, "a429"),
    (185, "a653_icm"),
    (186, "usb_freebsd"),
    (187, "bluetooth_hci_h4"),
    (188, "ieee802_16_mac_cps"),
    (189, "usb_linux"),
    (190, "can20b"),
    (191, "ieee802_15_4_linux"),
    (192, "ppi"),
    (193, "ieee802_16_mac_cps_radio"),
    (194, "juniper_ism"),
    (195, "ieee802_15_4_withfcs"),
    (196, "sita"),
    (197, "erf"),
    (198, "raif1"),
    (199, "ipmb_kontron"),
    (200, "juniper_st"),
    (201, "bluetooth_hci_h4_with_phdr"),
    (202, "ax25_kiss"),
    (203, "lapd"),
    (204, "ppp_with_dir"),
    (205, "c_hdlc_with_dir"),
    (206, "frelay_with_dir"),
    (207, "lapb_with_dir"),
    (209, "ipmb_linux"),
    (210, "flexray"),
    (211, "most"),
    (212, "lin"),
    (213, "x2e_serial"),
    (214, "x2e_xoraya"),
    (215, "ieee802_15_4_nonask_phy"),
    (216, "linux_evdev"),
    (217, "gsmtap_um"),
    (218, "gsmtap_abis"),
    (219, "mpls"),
    (220, "usb_linux_mmapped"),
    (221, "dect"),
    (222, "aos"),
    (223, "wirelesshart"),
    (224, "fc_2"),
    (225, "fc_2_with_frame_delims"),
    (226, "ipnet"),
    (227, "can_socketcan"),
    (228, "ipv4"),
    (229, "ipv6"),
    (230, "ieee802_15_4_nofcs"),
    (231, "dbus"),
    (232, "juniper_vs"),
    (233, "juniper_srx_e2e"),
    (234, "juniper_fibrechannel"),
    (235, "dvb_ci"),
    (236, "mux27010"),
    (237, "stanag_5066_d_pdu"),
    (238, "juniper_atm_cemic"),
    (239, "nflog"),
    (240, "netanalyzer"),
    (241, "netanalyzer_transparent"),
    (242, "ipoib"),
    (243, "mpeg_2_ts"),
    (244, "ng40"),
    (245, "nfc_llcp"),
    (246, "pfsync"),
    (247, "infiniband"),
    (248, "sctp"),
    (249, "usbpcap"),
    (250, "rtac_serial"),
    (251, "bluetooth_le_ll"),
    (252, "wireshark_upper_pdu"),
    (253, "netlink"),
    (254, "bluetooth_linux_monitor"),
    (255, "bluetooth_bredr_bb"),
    (256, "bluetooth_le_ll_with_phdr"),
    (257, "profibus_dl"),
    (258, "pktap"),
    (259, "epon"),
    (260, "ipmi_hpm_2"),
    (261, "zwave_r1_r2"),
    (262, "zwave_r3"),
    (263, "wattstopper_dlm"),
    (264, "iso_14443"),
    (265, "rds"),
    (266, "usb_darwin"),
    (267, "openflow"),
    (268, "sdlc"),
    (269, "ti_lln_sniffer"),
    (270, "loratap"),
    (271, "vsock"),
    (272, "nordic_ble"),
    (273, "docsis31_xra31"),
    (274, "ethernet_mpacket"),
    (275, "displayport_aux"),
    (276, "linux_sll2"),
    (277, "sercos_monitor"),
    (278, "openvizsla"),
    (279, "ebhscr"),
    (280, "vpp_dispatch"),
    (281, "dsa_tag_brcm"),
    (282, "dsa_tag_brcm_prepend"),
    (283, "ieee802_15_4_tap"),
    (284, "dsa_tag_dsa"),
    (285, "dsa_tag_edsa"),
    (286, "elee"),
    (287, "z_wave_serial"),
    (288, "usb_2_0"),
    (289, "atsc_alp"),
    (290, "etw"),
    (291, "netanalyzer_ng"),
    (292, "zboss_ncp"),
    (293, "usb_2_0_low_speed"),
    (294, "usb_2_0_full_speed"),
    (295, "usb_2_0_high_speed"),
    (296, "auerswald_log"),
    (297, "zwave_tap"),
    (298, "silabs_debug_channel"),
    (299, "fira_uci"),
    (300, "mdb"),
    (301, "dect_nr"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted_so_that_they_are_found() {
        assert!(NAMES.is_sorted_by_key(|&(number, _)| number));
        for &(number, name) in NAMES {
            assert_eq!(LinkType(number).name(), Some(name));
        }
        assert_eq!(LinkType(65_535).name(), None);
        assert_eq!(
            LinkType::IEEE802_11_RADIOTAP.name(),
            Some("ieee802_11_radiotap")
        );
    }

    #[test]
    fn numbers_of_single_systems_become_those_of_the_registry() {
        assert_eq!(canonical(12), LinkType::RAW_IP);
        assert_eq!(canonical(14), LinkType::RAW_IP);
        assert_eq!(canonical(11), LinkType::ATM_RFC1483);
        assert_eq!(canonical(1), LinkType::ETHERNET);
    }
}
