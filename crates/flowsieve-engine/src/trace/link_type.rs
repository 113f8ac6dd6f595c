//! Names of the link types that capture files are marked with.

use super::packet::LinkType;

/// Link types that the code refers to, with the names of the registry of tcpdump.org.
#[doc(hidden)]
impl LinkType {
    /// Ethernet II and IEEE 802.3.
    pub const ETHERNET: Self = Self(1);
    /// PPP, with or without address and control bytes.
    pub const PPP: Self = Self(9);
    /// LLC/SNAP encapsulated ATM.
    pub const ATM_RFC1483: Self = Self(100);
    /// A bare IPv4 or IPv6 packet.
    pub const RAW_IP: Self = Self(101);
    /// Cisco HDLC.
    pub const CISCO_HDLC: Self = Self(104);
    /// Frame relay.
    pub const FRAME_RELAY: Self = Self(107);
    /// Linux "cooked" capture, version 1.
    pub const LINUX_SLL: Self = Self(113);
    /// IEEE 802.11 after a radiotap header.
    pub const IEEE802_11_RADIOTAP: Self = Self(127);
    /// Endace ERF records.
    pub const ERF: Self = Self(197);
    /// InfiniBand.
    pub const INFINIBAND: Self = Self(247);
}

impl LinkType {
    /// Returns the name of the `LINKTYPE_` registry in lower case (`ethernet`, `linux_sll`, …), if
    /// it has one.
    #[doc(hidden)]
    pub fn name(self) -> Option<&'static str> {
        name_in(NAMES, self.0)
    }

    /// Returns its name, or its number.
    pub(crate) fn words(self) -> String {
        self.name().map_or_else(|| self.0.to_string(), str::to_owned)
    }
}

/// Runs of numbers that have names: the first number of each, and the names from there on.
pub(crate) type Runs = [(u16, &'static str)];

/// Returns the name of a number; `runs` must be ascending.
pub(crate) fn name_in(runs: &Runs, number: u16) -> Option<&'static str> {
    let behind = runs.partition_point(|(first, _)| *first <= number);
    let (first, names) = runs[..behind].last()?;
    names.split(' ').nth((number - first).into())
}

/// Returns the number of a name.
pub(crate) fn number_in(runs: &Runs, name: &str) -> Option<u16> {
    runs.iter().find_map(|(first, names)| {
        let place = names.split(' ').position(|known| known == name)?;
        Some(first + place as u16)
    })
}

/// Returns the registry's number for a number of a single system; where these overlap, as Wireshark
/// reads them.
pub(super) fn canonical(number: u16) -> LinkType {
    LinkType(match number {
        11 => 100,
        12 | 14 => 101,
        13 => 109,
        16 | 18 => 19,
        other => other,
    })
}

/// Runs of the registry: the first number, and the names from it on.
const NAMES: &Runs = &[
    (0, "null ethernet exp_ethernet ax25 pronet chaos ieee802_5 arcnet_bsd slip ppp fddi"),
    (19, "atm_clip"),
    (50, "ppp_hdlc ppp_ether"),
    (
        99,
        "symantec_firewall atm_rfc1483 raw_ip slip_bsdos ppp_bsdos c_hdlc ieee802_11 atm_clip frelay \
         loop enc lane8023 hippi hdlc linux_sll ltalk econet ipfilter pflog cisco_ios \
         ieee802_11_prism ieee802_11_aironet hhdlc ip_over_fc sunatm rio pci_exp aurora \
         ieee802_11_radiotap tzsp arcnet_linux juniper_mlppp juniper_mlfr juniper_es juniper_ggsn \
         juniper_mfr juniper_atm2 juniper_services juniper_atm1 apple_ip_over_ieee1394 mtp2_with_phdr \
         mtp2 mtp3 sccp docsis linux_irda ibm_sp ibm_sn user0 user1 user2 user3 user4 user5 user6 \
         user7 user8 user9 user10 user11 user12 user13 user14 user15 ieee802_11_avs juniper_monitor \
         bacnet_ms_tp ppp_pppd juniper_pppoe juniper_pppoe_atm gprs_llc gpf_t gpf_f gcom_t1e1 \
         gcom_serial juniper_pic_peer erf_eth erf_pos linux_lapd juniper_ether juniper_ppp \
         juniper_frelay juniper_chdlc mfr juniper_vp a429 a653_icm usb_freebsd bluetooth_hci_h4 \
         ieee802_16_mac_cps usb_linux can20b ieee802_15_4_linux ppi ieee802_16_mac_cps_radio \
         juniper_ism ieee802_15_4_withfcs sita erf raif1 ipmb_kontron juniper_st \
         bluetooth_hci_h4_with_phdr ax25_kiss lapd ppp_with_dir c_hdlc_with_dir frelay_with_dir \
         lapb_with_dir",
    ),
    (
        209,
        "ipmb_linux flexray most lin x2e_serial x2e_xoraya ieee802_15_4_nonask_phy linux_evdev \
         gsmtap_um gsmtap_abis mpls usb_linux_mmapped dect aos wirelesshart fc_2 \
         fc_2_with_frame_delims ipnet can_socketcan ipv4 ipv6 ieee802_15_4_nofcs dbus juniper_vs \
         juniper_srx_e2e juniper_fibrechannel dvb_ci mux27010 stanag_5066_d_pdu juniper_atm_cemic \
         nflog netanalyzer netanalyzer_transparent ipoib mpeg_2_ts ng40 nfc_llcp pfsync infiniband \
         sctp usbpcap rtac_serial bluetooth_le_ll wireshark_upper_pdu netlink bluetooth_linux_monitor \
         bluetooth_bredr_bb bluetooth_le_ll_with_phdr profibus_dl pktap epon ipmi_hpm_2 zwave_r1_r2 \
         zwave_r3 wattstopper_dlm iso_14443 rds usb_darwin openflow sdlc ti_lln_sniffer loratap vsock \
         nordic_ble docsis31_xra31 ethernet_mpacket displayport_aux linux_sll2 sercos_monitor \
         openvizsla ebhscr vpp_dispatch dsa_tag_brcm dsa_tag_brcm_prepend ieee802_15_4_tap \
         dsa_tag_dsa dsa_tag_edsa elee z_wave_serial usb_2_0 atsc_alp etw netanalyzer_ng zboss_ncp \
         usb_2_0_low_speed usb_2_0_full_speed usb_2_0_high_speed auerswald_log zwave_tap \
         silabs_debug_channel fira_uci mdb dect_nr",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_registry() {
        assert!(NAMES.is_sorted_by_key(|&(first, _)| first));
        for (number, name) in [
            (0, Some("null")),
            (10, Some("fddi")),
            (11, None),
            (19, Some("atm_clip")),
            (207, Some("lapb_with_dir")),
            (208, None),
            (209, Some("ipmb_linux")),
            (301, Some("dect_nr")),
            (302, None),
            (65_535, None),
        ] {
            assert_eq!(LinkType(number).name(), name, "{number}");
        }
        let radiotap = LinkType::IEEE802_11_RADIOTAP.name();
        assert_eq!(radiotap, Some("ieee802_11_radiotap"));
    }

    #[test]
    fn numbers_of_single_systems_become_those_of_the_registry() {
        assert_eq!(canonical(12), LinkType::RAW_IP);
        assert_eq!(canonical(14), LinkType::RAW_IP);
        assert_eq!(canonical(11), LinkType::ATM_RFC1483);
        assert_eq!(canonical(1), LinkType::ETHERNET);
    }
}
